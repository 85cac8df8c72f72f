// The buffers of an iovec as spans, at most protocol::kIovMax of them, and their length together: what every
// call with a vector passes on.
#pragma once

#include <rdma/fabric.h>

#include "protocol/iov_array.h"

namespace cluster::api {

template <typename Bytes>
class IovecSpans {
 public:
  /// False if there are more than kIovMax.
  bool read(const iovec* vector, std::size_t count) {
    if (count > protocol::kIovMax || (count > 0 && vector == nullptr)) return false;
    for (std::size_t i = 0; i < count; ++i) add(as_bytes(vector[i].iov_base, vector[i].iov_len));
    return true;
  }
  /// There are fewer than kIovMax.
  void add(Bytes bytes) {
    spans_.add(bytes);
    length_ += bytes.size();
  }
  std::span<const Bytes> spans() const { return spans_.all(); }
  std::size_t length() const { return length_; }

 private:
  protocol::IovArray<Bytes> spans_;
  std::size_t length_ = 0;
};

}  // namespace cluster::api
