// The ops tables of endpoints. Which table an endpoint points to depends on its capabilities and on whether
// it is enabled. So data operations need to check neither.
#pragma once

#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include <span>

#include "api/fid_object.h"
#include "protocol/outgoing_request.h"

namespace cluster::api {

// An enabled endpoint has these tables for its capabilities, unless it needs the tables of special_ops.h or
// connected_ops.cc.
extern fi_ops_msg msg_ops;
extern fi_ops_tagged tagged_ops;
extern fi_ops_rma rma_ops;
extern fi_ops_atomic atomic_ops;
extern fi_ops_collective collective_ops;
/// The calls that begin deferred work (deferred_work.h). These tables contain only calls with a message
/// structure.
extern fi_ops_msg deferred_msg_ops;
extern fi_ops_tagged deferred_tagged_ops;
extern fi_ops_rma deferred_rma_ops;
extern fi_ops_atomic deferred_atomic_ops;
/// The tables of an FI_EP_MSG endpoint (connected_ops.cc).
extern fi_ops_msg connected_msg_ops;
extern fi_ops_tagged connected_tagged_ops;
extern fi_ops_rma connected_rma_ops;
extern fi_ops_atomic connected_atomic_ops;
/// The table of an endpoint that is not enabled yet, or of an object that a forked child has inherited.
template <typename Table>
inline constinit Table disabled_ops = stub_ops<Table>(kEopbadstate);
extern fi_ops_atomic atomic_ops_disabled;
/// The table for a capability that the endpoint does not have.
template <typename Table>
inline constinit Table unsupported_ops = stub_ops<Table>(kEnosys);

int query_atomic(fid_domain* domain, fi_datatype type, fi_op op, fi_atomic_attr* attributes,
                 std::uint64_t flags) noexcept;
int query_collective(fid_domain* domain, fi_collective_op coll, fi_collective_attr* attributes,
                     std::uint64_t flags) noexcept;
extern fi_ops_mr mr_ops;

/// Implements fi_join: joins a multicast group or, with FI_COLLECTIVE, a team (fi_join_collective). Defined
/// in mc.cc.
int join(fid_ep* endpoint, const void* address, std::uint64_t flags, fid_mc** mc, void* context) noexcept;

/// Converts an array of iovec to spans, and adds up their lengths.
template <typename Bytes>
class IovecSpans {
 public:
  /// Returns false if there are more buffers than protocol::kIovMax, or if the array is missing.
  bool read(const iovec* vector, std::size_t count) {
    if (count > protocol::kIovMax || (count > 0 && vector == nullptr)) return false;
    for (std::size_t i = 0; i < count; ++i) add(as_bytes(vector[i].iov_base, vector[i].iov_len));
    return true;
  }
  /// Adds a buffer. The object must hold fewer than kIovMax buffers.
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
