// Bodies that come from one member in parts (group_repair): where its path carries shorter frames than those of the group.
// Parts of a body follow each other; one that does not continue what is here begins anew or is dropped, and is asked for
// again. So there is one body at a time, of at most a frame.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "wire/frame.h"
#include "wire/segment.h"

namespace cluster::group {

class RepairParts {
 public:
  /// The body, if this part is all of it or the last one; else empty. Valid until the next call.
  ConstBytes add(const wire::Segment& part, ConstBytes bytes) {
    if (part.peer_id == 0 && part.total == bytes.size()) return bytes;
    const bool continues = part.id == stream_ && part.offset == sequence_ && part.peer_id == body_.size();
    if (part.peer_id != 0 && !continues) return {};
    if (part.total > wire::kFrameMax || part.peer_id + bytes.size() > part.total) return {};
    if (part.peer_id == 0) body_.clear();
    stream_ = part.id;
    sequence_ = part.offset;
    body_.insert(body_.end(), bytes.begin(), bytes.end());
    return body_.size() == part.total ? ConstBytes(body_) : ConstBytes();
  }

 private:
  std::uint32_t stream_ = 0;
  std::uint64_t sequence_ = 0;
  std::vector<std::byte> body_;
};

}  // namespace cluster::group
