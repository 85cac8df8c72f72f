// An endpoint: a fid_ep around an engine. Opened, bound to its queues, enabled; only then do its
// message tables lead anywhere, so that the calls that matter need not ask whether they may.
//
//   endpoint.cc            open, close, control
//   endpoint_bind.cc       bind, enable, the engine's beginning and end
//   endpoint_options.cc    getopt, setopt, operation flags
//   alias.cc               a second face with operation flags of its own (fi_ep_alias)
//   insight.cc             what it has counted, and its peers' paths
//   name.cc                getname, setname
//   fold.h, msg.cc, tagged.cc   the calls that matter
//
// libfabric demands that calls that change an endpoint (bind, enable, options, close) are not made
// while others use it; so nothing here is locked but the list of its aliases. The engine has its own door.
#pragma once

#include <rdma/fi_endpoint.h>

#include <memory>
#include <mutex>
#include <vector>

#include "api/av.h"
#include "api/cntr.h"
#include "api/cq.h"
#include "api/errno_map.h"
#include "api/tx_flags.h"

namespace cluster::api {

class Endpoint : public fid_ep {
 public:
  using Handle = fid_ep;

  static int open(Domain& domain, const fi_info* info, fid_ep** handle, void* context);
  ~Endpoint();

  // --- the hot path; enabled endpoints only ---
  const TxFlags& tx_flags() const { return tx_flags_; }
  TxFlags tx_flags(std::uint64_t flags) const { return api::tx_flags(flags, send_selective_); }
  protocol::CompletionLevel inject_promise() const { return inject_promise_; }
  bool report_receives() const { return report_receives_; }
  /// The least room of a buffer for many messages, if that is what these flags make of one; else 0.
  std::size_t min_multi_recv(std::uint64_t flags) const {
    return flags & FI_MULTI_RECV ? multi_receive_min_ : 0;
  }
  std::size_t default_multi_receive_min() const { return min_multi_recv(receive_flags_); }
  bool report_receive(std::uint64_t flags) const { return !receive_selective_ || (flags & FI_COMPLETION); }
  /// The sender to receive from: anyone, unless the endpoint was opened for directed receives.
  std::uint64_t sender(fi_addr_t address) const { return address | source_mask_; }
  std::size_t longest_atomic() const { return atomic_limits_.message; }
  ssize_t send(const protocol::SendOp& order) noexcept;
  ssize_t receive(const protocol::RecvOp& order) noexcept;
  ssize_t access(const protocol::WriteOp& order) noexcept;
  ssize_t access(const protocol::ReadOp& order) noexcept;
  ssize_t access(const protocol::AtomicRmaOp& order) noexcept;

  // --- alias.cc ---
  int open_alias(fid_t* handle, std::uint64_t flags);
  /// Itself, or what it is an alias of: whoever has the engine, the queues and the name.
  Endpoint& original() { return original_ ? *original_ : *this; }

  // --- endpoint_bind.cc ---
  int bind(fid_t object, std::uint64_t flags);
  int enable();
  bool enabled() const { return enabled_; }
  ssize_t cancel(void* context);

  // --- endpoint_options.cc ---
  int get_option(int name, void* value, std::size_t* size) const;
  int set_option(int name, const void* value, std::size_t size);
  int get_operation_flags(std::uint64_t* flags) const;
  int set_operation_flags(const std::uint64_t* flags);
  std::size_t tx_size_left() const;
  std::size_t rx_size() const { return rx_size_; }

  // --- insight.cc ---
  int read_counters(Counters& counted) const;
  int path_to(fi_addr_t peer, const char*& path) const;

  // --- name.cc ---
  int get_name(void* address, std::size_t* size);
  int set_name(const void* address, std::size_t size);

  RefCount& ref_count() { return ref_count_; }

 private:
  struct Limits {
    std::size_t message;
    std::size_t inject;
  };

  Endpoint(Domain& domain, const fi_info& info, void* context);
  explicit Endpoint(Endpoint& original);

  int bind_cq(Cq& cq, std::uint64_t flags);
  int bind_cntr(Cntr& cntr, std::uint64_t flags);
  int check_complete() const;
  int ensure_engine();
  void install_ops(engine::Engine& engine);
  void update_flags();
  std::size_t* limit_for(int option);
  template <typename Act>
  ssize_t retry_once(Act&& act) noexcept;

  // Looked at by every operation.
  engine::Engine* live_engine_ = nullptr;  ///< the engine, once enabled
  std::uint64_t source_mask_;              ///< all ones: the sender of a receive is not looked at
  Limits limits_[2];                       ///< untagged, tagged
  Limits remote_limits_;                   ///< remote writes and reads
  Limits atomic_limits_;
  TxFlags tx_flags_;
  protocol::CompletionLevel inject_promise_ = protocol::CompletionLevel::inject;
  bool report_receives_ = true;

  bool send_selective_ = false;
  bool receive_selective_ = false;
  bool enabled_ = false;
  std::uint64_t caps_;
  protocol::Ordering ordering_;
  std::uint64_t send_flags_;
  std::uint64_t receive_flags_;
  std::size_t tx_size_;
  std::size_t rx_size_;
  std::size_t multi_receive_min_ = 64;  ///< FI_OPT_MIN_MULTI_RECV
  engine::EndpointType service_;
  SocketAddress requested_name_;
  Ref<Domain> domain_;
  Ref<Av> av_;
  Ref<Eq> eq_;
  Ref<Cq> send_cq_;
  Ref<Cq> receive_cq_;
  std::vector<std::unique_ptr<Ref<Cntr>>> cntrs_;
  Cntr* send_cntr_ = nullptr;
  Cntr* receive_cntr_ = nullptr;
  Cntr* write_cntr_ = nullptr;
  Cntr* read_cntr_ = nullptr;
  Cntr* remote_write_cntr_ = nullptr;
  Cntr* remote_read_cntr_ = nullptr;
  RefCount ref_count_;
  Ref<Endpoint> original_;          ///< set in an alias
  std::vector<Endpoint*> aliases_;  ///< those of an original
  std::unique_ptr<engine::Engine> engine_;
  std::mutex aliases_lock_;  ///< faces come and go in several threads
};

/// No room: one turn of the engine may make some, also for callers that only ever repeat the call.
template <typename Act>
ssize_t Endpoint::retry_once(Act&& act) noexcept {
  return guarded([&]() -> ssize_t {
    Status status = act();
    if (status == Status::again) {
      live_engine_->poll(false);
      status = act();
    }
    return -fi_errno_of(status);
  });
}

inline ssize_t Endpoint::send(const protocol::SendOp& order) noexcept {
  const Limits& limits = limits_[order.tagged];
  if (order.length > (order.inject ? limits.inject : limits.message)) [[unlikely]] {
    return order.inject ? -FI_EINVAL : -FI_EMSGSIZE;
  }
  return retry_once([&] { return live_engine_->send(order); });
}

inline ssize_t Endpoint::receive(const protocol::RecvOp& order) noexcept {
  return guarded([&]() -> ssize_t {
    const Status status = live_engine_->receive(order);
    return status == Status::ok ? 0 : -fi_errno_of(status);
  });
}

inline ssize_t Endpoint::access(const protocol::WriteOp& order) noexcept {
  if (order.length > (order.inject ? remote_limits_.inject : remote_limits_.message)) [[unlikely]] {
    return order.inject ? -FI_EINVAL : -FI_EMSGSIZE;
  }
  return retry_once([&] { return live_engine_->put(order); });
}

inline ssize_t Endpoint::access(const protocol::ReadOp& order) noexcept {
  if (order.length > remote_limits_.message) [[unlikely]]
    return -FI_EMSGSIZE;
  return retry_once([&] { return live_engine_->get(order); });
}

inline ssize_t Endpoint::access(const protocol::AtomicRmaOp& order) noexcept {
  const bool too_long = order.length > atomic_limits_.message;
  const bool not_injectable = order.inject && order.length * order.code.operands() > atomic_limits_.inject;
  if (too_long || not_injectable) [[unlikely]]
    return too_long ? -FI_EMSGSIZE : -FI_EINVAL;
  return retry_once([&] { return live_engine_->atomic(order); });
}

}  // namespace cluster::api
