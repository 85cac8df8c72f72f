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
#include "api/faults.h"
#include "api/send_manner.h"

namespace cluster::api {

class Endpoint : public fid_ep {
 public:
  using Handle = fid_ep;

  static int open(Domain& domain, const fi_info* info, fid_ep** handle, void* context);
  ~Endpoint();

  // --- the hot path; enabled endpoints only ---
  const SendManner& send_manner() const { return send_manner_; }
  SendManner send_manner(std::uint64_t flags) const { return api::send_manner(flags, send_selective_); }
  protocol::Promise inject_promise() const { return inject_promise_; }
  bool report_receives() const { return report_receives_; }
  /// The least room of a buffer for many messages, if that is what these flags make of one; else 0.
  std::size_t least_room(std::uint64_t flags) const { return flags & FI_MULTI_RECV ? multi_receive_min_ : 0; }
  std::size_t usual_least_room() const { return least_room(receive_flags_); }
  bool report_receive(std::uint64_t flags) const { return !receive_selective_ || (flags & FI_COMPLETION); }
  /// The sender to receive from: anyone, unless the endpoint was opened for directed receives.
  std::uint64_t sender(fi_addr_t address) const { return address | undirected_; }
  std::size_t longest_atomic() const { return atomic_limits_.message; }
  ssize_t send(const protocol::SendOrder& order) noexcept;
  ssize_t receive(const protocol::ReceiveOrder& order) noexcept;
  ssize_t access(const protocol::PutOrder& order) noexcept;
  ssize_t access(const protocol::GetOrder& order) noexcept;
  ssize_t access(const protocol::AtomicOrder& order) noexcept;

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
  std::size_t room_for_sends() const;
  std::size_t receive_size() const { return receive_size_; }

  // --- insight.cc ---
  int read_counters(Counters& counted) const;
  std::size_t unexpected_messages() const;
  int path_to(fi_addr_t peer, const char*& path) const;

  // --- name.cc ---
  int get_name(void* address, std::size_t* size);
  int set_name(const void* address, std::size_t size);

  Users& users() { return users_; }

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
  int have_engine();
  void go_live(engine::Engine& engine);
  void update_manners();
  std::size_t* limit_for(int option);
  template <typename Act>
  ssize_t try_twice(Act&& act) noexcept;

  // Looked at by every operation.
  engine::Engine* running_ = nullptr;  ///< the engine, once enabled
  std::uint64_t undirected_;           ///< all ones: the sender of a receive is not looked at
  Limits limits_[2];                   ///< untagged, tagged
  Limits remote_limits_;               ///< remote writes and reads
  Limits atomic_limits_;
  SendManner send_manner_;
  protocol::Promise inject_promise_ = protocol::Promise::buffer_free;
  bool report_receives_ = true;

  bool send_selective_ = false;
  bool receive_selective_ = false;
  bool enabled_ = false;
  std::uint64_t caps_;
  protocol::Ordering ordering_;
  std::uint64_t send_flags_;
  std::uint64_t receive_flags_;
  std::size_t send_size_;
  std::size_t receive_size_;
  std::size_t multi_receive_min_ = 64;  ///< FI_OPT_MIN_MULTI_RECV
  engine::Service service_;
  SocketAddress wanted_;
  Use<Domain> domain_;
  Use<Av> av_;
  Use<Eq> eq_;
  Use<Cq> send_cq_;
  Use<Cq> receive_cq_;
  std::vector<std::unique_ptr<Use<Cntr>>> cntrs_;
  Cntr* send_cntr_ = nullptr;
  Cntr* receive_cntr_ = nullptr;
  Cntr* write_cntr_ = nullptr;
  Cntr* read_cntr_ = nullptr;
  Cntr* remote_write_cntr_ = nullptr;
  Cntr* remote_read_cntr_ = nullptr;
  Users users_;
  Use<Endpoint> original_;          ///< set in an alias
  std::vector<Endpoint*> aliases_;  ///< those of an original
  std::unique_ptr<engine::Engine> engine_;
  std::mutex aliases_lock_;  ///< faces come and go in several threads
};

/// No room: one turn of the engine may make some, also for callers that only ever repeat the call.
template <typename Act>
ssize_t Endpoint::try_twice(Act&& act) noexcept {
  return guarded([&]() -> ssize_t {
    Fault fault = act();
    if (fault == Fault::again) {
      running_->poll(false);
      fault = act();
    }
    return -error_of(fault);
  });
}

inline ssize_t Endpoint::send(const protocol::SendOrder& order) noexcept {
  const Limits& limits = limits_[order.tagged];
  if (order.length > (order.inject ? limits.inject : limits.message)) [[unlikely]] {
    return order.inject ? -FI_EINVAL : -FI_EMSGSIZE;
  }
  return try_twice([&] { return running_->send(order); });
}

inline ssize_t Endpoint::receive(const protocol::ReceiveOrder& order) noexcept {
  return guarded([&]() -> ssize_t {
    const Fault fault = running_->receive(order);
    return fault == Fault::none ? 0 : -error_of(fault);
  });
}

inline ssize_t Endpoint::access(const protocol::PutOrder& order) noexcept {
  if (order.length > (order.inject ? remote_limits_.inject : remote_limits_.message)) [[unlikely]] {
    return order.inject ? -FI_EINVAL : -FI_EMSGSIZE;
  }
  return try_twice([&] { return running_->put(order); });
}

inline ssize_t Endpoint::access(const protocol::GetOrder& order) noexcept {
  if (order.length > remote_limits_.message) [[unlikely]]
    return -FI_EMSGSIZE;
  return try_twice([&] { return running_->get(order); });
}

inline ssize_t Endpoint::access(const protocol::AtomicOrder& order) noexcept {
  const bool too_long = order.length > atomic_limits_.message;
  const bool not_injectable = order.inject && order.length * order.code.operands() > atomic_limits_.inject;
  if (too_long || not_injectable) [[unlikely]]
    return too_long ? -FI_EMSGSIZE : -FI_EINVAL;
  return try_twice([&] { return running_->atomic(order); });
}

}  // namespace cluster::api
