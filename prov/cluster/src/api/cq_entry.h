// A completion in each of the four entry formats. Some programs compare the flags for equality, so only the
// flags that fi_cq(3) defines for an operation are set.
#pragma once

#include <rdma/fi_eq.h>

#include "protocol/completion.h"

namespace cluster::api {

inline std::uint64_t flags_of(const protocol::Completion& completion) {
  using Kind = protocol::Completion::Kind;
  switch (completion.kind) {
    case Kind::send: return FI_SEND | (completion.tagged ? FI_TAGGED : FI_MSG);
    case Kind::receive:
      return FI_RECV | (completion.tagged ? FI_TAGGED : FI_MSG) |
             (completion.releases_buffer ? FI_MULTI_RECV : 0);
    case Kind::buffer_released: return FI_MULTI_RECV;
    case Kind::write: return FI_RMA | FI_WRITE;
    case Kind::read: return FI_RMA | FI_READ;
    case Kind::atomic: return FI_ATOMIC | FI_WRITE;
    case Kind::fetch: return FI_ATOMIC | FI_READ;
    case Kind::remote_write: return FI_RMA | FI_REMOTE_WRITE;
  }
  return 0;
}

/// With FI_REMOTE_CQ_DATA, for entry formats that have a data field.
inline std::uint64_t flags_with_data(const protocol::Completion& completion) {
  return flags_of(completion) | (completion.has_data ? FI_REMOTE_CQ_DATA : 0);
}

inline void write_entry(fi_cq_entry& entry, const protocol::Completion& completion) {
  entry.op_context = completion.context;
}

inline void write_entry(fi_cq_msg_entry& entry, const protocol::Completion& completion) {
  entry.op_context = completion.context;
  entry.flags = flags_of(completion);
  entry.len = completion.length;
}

inline void write_entry(fi_cq_data_entry& entry, const protocol::Completion& completion) {
  entry.op_context = completion.context;
  entry.flags = flags_with_data(completion);
  entry.len = completion.length;
  entry.buf = completion.buffer;
  entry.data = completion.data;
}

inline void write_entry(fi_cq_tagged_entry& entry, const protocol::Completion& completion) {
  entry.op_context = completion.context;
  entry.flags = flags_with_data(completion);
  entry.len = completion.length;
  entry.buf = completion.buffer;
  entry.data = completion.data;
  entry.tag = completion.tag;
}

}  // namespace cluster::api
