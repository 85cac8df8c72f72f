// A copy of the arguments of a data transfer call, for operations that begin later: triggered operations and
// deferred work (deferred_work.h). The copy includes all arrays, because some programs use the same arrays
// for the next call. The data buffers themselves are not copied.
#pragma once

#include <rdma/fi_atomic.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

#include "api/ops_tables.h"

namespace cluster::api {

/// The ops tables through which a call begins. The context of a call through `deferred_calls` must be a
/// DeferredOperation (deferred_work.h).
struct CallTables {
  const fi_ops_msg& msg;
  const fi_ops_tagged& tagged;
  const fi_ops_rma& rma;
  const fi_ops_atomic& atomic;
};
extern const CallTables ordinary_calls;
extern const CallTables deferred_calls;

/// The arrays that only fetching and comparing atomic operations have.
struct AtomicArrays {
  const fi_ioc* results = nullptr;
  std::size_t result_count = 0;
  const fi_ioc* compares = nullptr;
  std::size_t compare_count = 0;
};

class CallCopy {
 public:
  enum class Kind : std::uint8_t { send, receive, write, read, atomic, fetch, compare };

  CallCopy(Kind kind, const fi_msg& message, std::uint64_t flags);
  CallCopy(Kind kind, const fi_msg_tagged& message, std::uint64_t flags);
  CallCopy(Kind kind, const fi_msg_rma& message, std::uint64_t flags);
  CallCopy(Kind kind, const fi_msg_atomic& message, const AtomicArrays& arrays, std::uint64_t flags);
  CallCopy(CallCopy&&) = default;
  CallCopy& operator=(CallCopy&&) = delete;

  Kind kind() const { return kind_; }
  bool tagged() const { return std::holds_alternative<fi_msg_tagged>(message_); }
  std::uint64_t flags() const { return flags_; }
  void* context() const;
  fi_addr_t peer() const;
  /// Returns the capability that an endpoint needs for the call.
  std::uint64_t capability() const;
  /// Returns false if an array is longer than the provider supports, or is missing.
  bool good() const { return good_; }
  void set_context(void* context);
  /// Begins the operation. If this returns -FI_EAGAIN, the caller can call it again later.
  ssize_t begin(fid_ep& endpoint, const CallTables& tables);

 private:
  template <typename Element>
  std::vector<Element> copy(const Element* array, std::size_t count);
  template <typename Message>
  void copy_buffers(const Message& message);

  Kind kind_;
  std::uint64_t flags_;
  bool good_ = true;
  std::vector<iovec> buffers_;
  std::vector<fi_ioc> operands_;
  std::vector<void*> descriptors_;
  std::vector<fi_rma_iov> ranges_;
  std::vector<fi_rma_ioc> atomic_ranges_;
  std::vector<fi_ioc> results_;
  std::vector<fi_ioc> compares_;
  /// The pointers in the message refer to the application's arrays until begin() sets them to the copies.
  std::variant<fi_msg, fi_msg_tagged, fi_msg_rma, fi_msg_atomic> message_;
};

}  // namespace cluster::api
