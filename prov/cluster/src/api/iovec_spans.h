// The buffers of an iovec as spans, at most protocol::kIovMax of them. Unused elements are not initialized,
// because every fi_sendv would pay for it.
#pragma once

#include <rdma/fabric.h>

#include <array>
#include <span>

#include "base/bytes.h"
#include "protocol/ops.h"

namespace cluster::api {

template <typename Bytes>
class IovecSpans {
 public:
  IovecSpans() {}

  /// False if there are more than kIovMax.
  bool read(const iovec* vector, std::size_t count) {
    if (count > spans_.size() || (count > 0 && vector == nullptr)) return false;
    for (std::size_t i = 0; i < count; ++i) add(as_bytes(vector[i].iov_base, vector[i].iov_len));
    return true;
  }
  /// There are fewer than kIovMax.
  void add(Bytes bytes) {
    spans_[count_++] = bytes;
    length_ += bytes.size();
  }
  std::span<const Bytes> spans() const { return {spans_.data(), count_}; }
  std::size_t length() const { return length_; }

 private:
  union {
    std::array<Bytes, protocol::kIovMax> spans_;  ///< only the first count_ are ever written
  };
  std::size_t count_ = 0;
  std::size_t length_ = 0;
};

}  // namespace cluster::api
