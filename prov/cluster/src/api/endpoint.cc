#include "api/endpoint.h"

#include <rdma/fi_cm.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_ext_cluster.h>

#include <cstddef>
#include <cstdio>
#include <cstring>

#include "api/ops_tables.h"
#include "api/passive_endpoint.h"
#include "api/sockaddr_io.h"
#include "base/enumeration.h"

namespace cluster::api {
namespace {

int endpoint_control(fid* endpoint, int command, void* argument) noexcept {
  Endpoint& object = object_of<Endpoint>(endpoint);
  switch (command) {
    case FI_ENABLE: return guarded([&] { return object.enable(); });
    case FI_ALIAS: {
      const auto* alias = static_cast<const struct fi_alias*>(argument);
      if (alias == nullptr) return -FI_EINVAL;
      return guarded([&] { return object.open_alias(alias->fid, alias->flags); });
    }
    case FI_GETOPSFLAG: return object.options().get_op_flags(static_cast<std::uint64_t*>(argument));
    case FI_SETOPSFLAG: return object.set_op_flags(static_cast<const std::uint64_t*>(argument));
    default: return -FI_ENOSYS;
  }
}

int get_option(fid* endpoint, int level, int name, void* value, std::size_t* size) noexcept {
  if (level != FI_OPT_ENDPOINT) return -FI_ENOPROTOOPT;
  return object_of<Endpoint>(endpoint).options().get_option(name, value, size);
}

int set_option(fid* endpoint, int level, int name, const void* value, std::size_t size) noexcept {
  if (level != FI_OPT_ENDPOINT) return -FI_ENOPROTOOPT;
  return object_of<Endpoint>(endpoint).options().set_option(name, value, size);
}

ssize_t tx_size_left(fid_ep* handle) noexcept {
  Endpoint& endpoint = endpoint_of(handle);
  return endpoint.engine() != nullptr ? static_cast<ssize_t>(endpoint.tx_size_left()) : -FI_EOPBADSTATE;
}

/// Returns the size from the attributes, although only memory limits the number of posted receives.
ssize_t rx_size_left(fid_ep* handle) noexcept {
  Endpoint& endpoint = endpoint_of(handle);
  return endpoint.engine() != nullptr ? static_cast<ssize_t>(endpoint.options().rx_size()) : -FI_EOPBADSTATE;
}

// The extension FI_CLUSTER_STATS (include/rdma/fi_ext_cluster.h), which returns an endpoint's counters and
// how each peer is reached.

ssize_t counters(fid_ep* handle, fi_cluster_counter* out, std::size_t count) noexcept {
  if (out == nullptr && count > 0) return -FI_EINVAL;
  const engine::Engine* const engine = endpoint_of(handle).opened_engine();
  if (engine == nullptr) return -FI_EOPBADSTATE;
  const Counters counters = engine->counters();
  std::size_t total = 0;
  counters.each([&](const char* name, std::uint64_t value, const char* help) {
    if (total < count) out[total] = {name, help, value};
    ++total;
  });
  return static_cast<ssize_t>(total);
}

int path(fid_ep* handle, fi_addr_t peer, const char** out) noexcept {
  if (out == nullptr) return -FI_EINVAL;
  const Endpoint& endpoint = endpoint_of(handle);
  if (endpoint.engine() == nullptr) return -FI_EOPBADSTATE;
  return guarded([&] {
    *out = endpoint.opened_engine()->carrier_name_of(peer);
    return *out == nullptr ? -FI_EINVAL : 0;
  });
}

constinit fi_cluster_ops_stats stats_ops = {
    .size = sizeof(fi_cluster_ops_stats), .counters = counters, .path = path};

int open_ops(fid*, const char* name, std::uint64_t flags, void** ops, void*) noexcept {
  if (name == nullptr || ops == nullptr) return -FI_EINVAL;
  if (flags != 0 || std::strcmp(name, FI_CLUSTER_STATS) != 0) return -FI_ENOSYS;
  *ops = &stats_ops;
  return 0;
}

constinit fi_ops endpoint_fid_ops = fid_ops({.close = close_object<Endpoint>,
                                             .bind = Method<&Endpoint::bind>::entry,
                                             .control = endpoint_control,
                                             .ops_open = open_ops});

constinit fi_ops_ep endpoint_ops = {
    .size = sizeof(fi_ops_ep),
    .cancel = Method<&Endpoint::cancel>::entry,
    .getopt = get_option,
    .setopt = set_option,
    .tx_ctx = kEnosys,
    .rx_ctx = kEnosys,
    .rx_size_left = rx_size_left,
    .tx_size_left = tx_size_left,
};

ConnectedEnd& connected_end_of(fid_ep* handle) { return *endpoint_of(handle).connected_end(); }

int connect_to(fid_ep* handle, const void* address, const void* data, std::size_t size) noexcept {
  return guarded([&] { return connected_end_of(handle).connect(address, data, size); });
}

int accept_request(fid_ep* handle, const void* data, std::size_t size) noexcept {
  return guarded([&] { return connected_end_of(handle).accept(data, size); });
}

int shut_down(fid_ep* handle, std::uint64_t flags) noexcept {
  return guarded([&] { return connected_end_of(handle).shut_down(flags); });
}

int get_peer(fid_ep* handle, void* address, std::size_t* size) noexcept {
  return guarded([&] { return connected_end_of(handle).get_peer(address, size); });
}

/// The table of an FI_EP_MSG endpoint.
constinit fi_ops_cm connected_cm_ops = [] {
  auto ops = stub_ops<fi_ops_cm>(kEnosys);
  ops.setname = Method<&Endpoint::set_name>::entry;
  ops.getname = Method<&Endpoint::get_name>::entry;
  ops.getpeer = get_peer;
  ops.connect = connect_to;
  ops.accept = accept_request;
  ops.shutdown = shut_down;
  return ops;
}();

/// The table of the other endpoints. They have no connections, so only the calls for names, groups and teams
/// are implemented.
constinit fi_ops_cm cm_ops = [] {
  auto ops = stub_ops<fi_ops_cm>(kEnosys);
  ops.setname = Method<&Endpoint::set_name>::entry;
  ops.getname = Method<&Endpoint::get_name>::entry;
  ops.join = join;
  return ops;
}();

struct LossEvent {
  std::byte entry[sizeof(fi_eq_cm_entry)];
  fi_cluster_peer_lost lost;
};

/// Returns the bytes of an FI_SHUTDOWN event. After the standard entry, the event contains the peer and the
/// cause of the loss (include/rdma/fi_ext_cluster.h).
LossEvent loss_event(struct fid& object, std::uint64_t handle, const SocketAddress& peer, Status cause) {
  LossEvent event{};
  sockaddr_storage address;
  event.lost.peer = handle;
  event.lost.err = fi_errno_of(cause);
  event.lost.prov_errno = static_cast<int>(cause);
  event.lost.address_size = static_cast<std::uint32_t>(peer.to(address));
  static_assert(sizeof event.lost.address == sizeof(sockaddr_in6));
  std::memcpy(event.lost.address, &address, event.lost.address_size);
  std::snprintf(event.lost.cause, sizeof event.lost.cause, "%s", describe(cause));
  const fid_t fid = &object;
  std::memcpy(event.entry + offsetof(fi_eq_cm_entry, fid), &fid, sizeof fid);
  static_assert(sizeof event == sizeof event.entry + sizeof event.lost);
  return event;
}

}  // namespace

Endpoint::Endpoint(Domain& domain, const fi_info& info, void* context)
    : fid_ep{{FI_CLASS_EP, context, &endpoint_fid_ops},
             &endpoint_ops,
             &cm_ops,
             nullptr,
             nullptr,
             nullptr,
             nullptr,
             nullptr},
      options_(info),
      type_(attributes_at(info.ep_attr).type == FI_EP_DGRAM ? engine::EndpointType::dgram
                                                            : engine::EndpointType::rdm),
      requested_name_(SocketAddress::from(static_cast<const sockaddr*>(info.src_addr), info.src_addrlen)),
      domain_(domain),
      bound_(domain),
      auth_key_(GivenAuthKey(attributes_at(info.ep_attr), domain.fabric().api_version)) {
  if (options_.connects()) {
    cm = &connected_cm_ops;
    connected_end_ = std::make_unique<ConnectedEnd>(*this);
  }
  point_to_ops(false);
}

Endpoint::Endpoint(Endpoint& original)
    : fid_ep(original),
      engine_(original.engine_),
      options_(original.options_),
      type_(original.type_),
      domain_(*original.domain_),
      bound_(*original.domain_),
      original_(original.original_ ? *original.original_ : original) {}

Endpoint::~Endpoint() {
  if (original_) return;
  if (connected_end_ != nullptr) connected_end_->close();
  domain_->deferred_work().leave(*this);
  if (owned_engine_ != nullptr) {
    bound_.remove_engine(*owned_engine_);
    domain_->mr_progress().remove_engine(*owned_engine_);
    domain_->work_progress().remove_engine(*owned_engine_);
  }
  served_regions_.reset();
  roster_entry_.reset();
  owned_engine_.reset();  // before the release of the objects to which the engine reports
  if (bound_.eq() != nullptr) bound_.eq()->forget(fid);
  domain_->deferred_work().forget(*this);
}

int Endpoint::open(Domain& domain, const fi_info* info, fid_ep** handle, void* context) {
  if (info == nullptr) return -FI_EINVAL;
  if (const int error = EpOptions::check(*info)) return error;
  const GivenAuthKey key(attributes_at(info->ep_attr), domain.fabric().api_version);
  if (const char* const refusal = key.refusal()) {
    domain.platform().log().warn("cannot open an endpoint: %s", refusal);
    return -FI_EINVAL;
  }
  auto endpoint = std::unique_ptr<Endpoint>(new Endpoint(domain, *info, context));
  if (endpoint->connected_end_ != nullptr && info->handle != nullptr) {
    if (const int error = endpoint->use_handle(info->handle)) return error;
  }
  *handle = endpoint.release();
  return 0;
}

/// Prepares an FI_EP_MSG endpoint that the application opens with `handle`. If this is the handle of a
/// connection request, the endpoint will answer the request. If it is the handle of a passive endpoint, this
/// endpoint gets the address of the passive endpoint.
int Endpoint::use_handle(fid_t handle) {
  ConnectionRequests& known = domain_->fabric().requests();
  if (const auto request = known.find(handle)) {
    connected_end_->set_request(handle, *request, requested_name_);
    requested_name_ = requested_name_.with_port(0);  // the passive endpoint has this port
    return 0;
  }
  requested_name_ = known.take_name(handle);
  if (!requested_name_.empty()) return 0;
  domain_->platform().log().warn(
      "cannot open an endpoint: the handle in its fi_info must be a pending connection request, or a "
      "passive endpoint that is not listening");
  return -FI_EINVAL;
}

/// The flags name one direction and replace the operation flags of this direction. In the other direction,
/// the alias gets the flags of this endpoint.
int Endpoint::open_alias(fid_t* handle, std::uint64_t flags) {
  if (handle == nullptr) return -FI_EINVAL;
  if (engine_ == nullptr) return -FI_EOPBADSTATE;
  auto alias = std::unique_ptr<Endpoint>(new Endpoint(*this));
  if (const int error = alias->set_op_flags(&flags)) return error;
  *handle = &alias.release()->fid;
  return 0;
}

int Endpoint::bind(fid_t object, std::uint64_t flags) {
  if (original_) return original_->bind(object, flags);
  if (object == nullptr) return -FI_EINVAL;
  if (options_.connects() && object->fclass == FI_CLASS_AV) return -FI_EINVAL;
  // A shared transmit context may be bound to an enabled endpoint (api/shared_contexts.h).
  if (engine_ == nullptr || object->fclass == FI_CLASS_STX_CTX) return bound_.bind(object, flags);
  if (object->fclass != FI_CLASS_CNTR) return -FI_EOPBADSTATE;
  bound_.remove_engine(*owned_engine_);
  int error = 0;
  try {
    error = bound_.bind(object, flags);
  } catch (...) {
    // This call allocates no memory: the engine was in these lists a moment ago, so the lists have space for
    // it.
    bound_.add_engine(*owned_engine_, options_);
    throw;
  }
  bound_.add_engine(*owned_engine_, options_);
  if (flags & (FI_REMOTE_READ | FI_REMOTE_WRITE))
    served_regions_.reset();  // this side must count accesses, so peers must no longer bypass its library
  if (error == 0) connect_bound();
  return error;
}

/// Builds the engine if there is none yet. Called when the application asks for the endpoint's name, and by
/// enable().
int Endpoint::ensure_engine() {
  if (owned_engine_ != nullptr) return 0;
  const AuthKey& key = auth_key_.empty() ? domain_->auth_key() : auth_key_;
  int error = 0;
  owned_engine_ =
      domain_->platform().build_engine({requested_name_, type_, key.bytes(), domain_->roster(),
                                        domain_->memory(), (options_.caps() & FI_COLLECTIVE) != 0},
                                       error);
  if (owned_engine_ == nullptr) return error > 0 ? -error : -FI_EOTHER;
  if (type_ == engine::EndpointType::rdm) roster_entry_.emplace(domain_->roster(), owned_engine_->name());
  if (domain_->automatic()) owned_engine_->enable_auto_progress();
  return 0;
}

int Endpoint::enable() {
  if (engine_ != nullptr) return 0;
  if (const int error = bound_.check_complete(options_)) return error;
  if (const int error = ensure_engine()) return error;
  const auto leave = [&] {  // no queue may poll an engine that is not enabled
    bound_.remove_engine(*owned_engine_);
    domain_->mr_progress().remove_engine(*owned_engine_);
    domain_->work_progress().remove_engine(*owned_engine_);
  };
  try {
    bound_.add_engine(*owned_engine_, options_);
    if (options_.caps() & (FI_RMA | FI_ATOMIC)) domain_->mr_progress().add_engine(*owned_engine_);
    domain_->work_progress().add_engine(*owned_engine_);
    if (connect_bound()) return 0;
  } catch (...) {  // memory has run out
    leave();
    throw;
  }
  leave();
  return -FI_ECONNABORTED;
}

/// Connects the engine with the bound objects, and the data operations with the engine. Called by enable(),
/// and again when a counter is bound later. Returns false if the endpoint is being enabled, and the
/// connection request for which it was opened no longer waits.
bool Endpoint::connect_bound() {
  protocol::EndpointBindings bindings = bound_.engine_bindings(options_);
  if (bound_.eq() != nullptr && connected_end_ == nullptr) {
    bindings.losses = &events_;
    bindings.groups = &events_;
  }
  bindings.deferred = &domain_->deferred_work();
  bindings.after_turn = &domain_->deferred_work();
  if (connected_end_ == nullptr) {
    owned_engine_->attach(bound_.av().address_table(), bindings);
  } else {
    if (engine_ == nullptr)
      owned_engine_->open_connection(static_cast<connection::ConnectionListener&>(*connected_end_));
    owned_engine_->attach(owned_engine_->connection_addresses(), bindings);
  }
  if (bindings.regions != nullptr && served_regions_ == nullptr) {
    served_regions_ = bindings.regions->serve(owned_engine_->name(), bindings.remote_access.reads != nullptr,
                                              bindings.remote_access.writes != nullptr);
  }
  // An endpoint that has taken the request must answer it. So nothing after this call may fail.
  if (engine_ == nullptr && connected_end_ != nullptr && !connected_end_->take_request(*owned_engine_))
    return false;
  options_.set_completion_mode(bound_.completion_mode());
  engine_ = owned_engine_.get();
  point_to_ops(true);
  return true;
}

int Endpoint::set_op_flags(const std::uint64_t* flags) {
  if (const int error = options_.set_op_flags(flags)) return error;
  point_to_ops(engine_ != nullptr);
  return 0;
}

/// Sets the pointers to the ops tables. For each table there are three variants: for an enabled endpoint, for
/// one that is not enabled yet, and for an endpoint without the capability.
void Endpoint::point_to_ops(bool enabled) {
  const auto choose = [&]<typename Table>(std::uint64_t capability, Table& live, Table& disabled) {
    if (!(options_.caps() & capability)) return &unsupported_ops<Table>;
    return enabled ? &live : &disabled;
  };
  special_ops_ = make_special_ops(options_);
  SpecialOps* const special = special_ops_.get();
  if (options_.connects()) {
    msg = choose(FI_MSG, connected_msg_ops, disabled_ops<fi_ops_msg>);
    tagged = choose(FI_TAGGED, connected_tagged_ops, disabled_ops<fi_ops_tagged>);
    rma = choose(FI_RMA, connected_rma_ops, disabled_ops<fi_ops_rma>);
    atomic = choose(FI_ATOMIC, connected_atomic_ops, atomic_ops_disabled);
    collective = &unsupported_ops<fi_ops_collective>;
    return;
  }
  msg = choose(FI_MSG, special != nullptr ? special->msg : msg_ops, disabled_ops<fi_ops_msg>);
  tagged = choose(FI_TAGGED, special != nullptr ? special->tagged : tagged_ops, disabled_ops<fi_ops_tagged>);
  rma = choose(FI_RMA, special != nullptr ? special->rma : rma_ops, disabled_ops<fi_ops_rma>);
  atomic = choose(FI_ATOMIC, special != nullptr ? special->atomic : atomic_ops, atomic_ops_disabled);
  collective = choose(FI_COLLECTIVE, collective_ops, disabled_ops<fi_ops_collective>);
}

/// Returns 0 even if it finds no receive and no triggered operation with this context. In that case a message
/// has usually matched the receive already, and the completion of the receive follows.
ssize_t Endpoint::cancel(void* context) {
  if (engine_ == nullptr) return -FI_EOPBADSTATE;
  if (!engine_->cancel(context) && (options_.caps() & FI_TRIGGER))
    domain_->deferred_work().cancel(origin(), context);
  return 0;
}

ssize_t Endpoint::access(protocol::WriteOp& op, const TxFlags& flags) noexcept {
  apply(flags, op);
  if (const ssize_t error = options_.limits(Operation::rma).check(op.length, op.inject)) return error;
  return post<&engine::Engine::write>(op);
}

/// Ignores FI_INJECT, which has no meaning for a buffer that the operation writes.
ssize_t Endpoint::access(protocol::ReadOp& op, const TxFlags& flags) noexcept {
  apply(flags, op);
  if (const ssize_t error = options_.limits(Operation::rma).check(op.length, false)) return error;
  return post<&engine::Engine::read>(op);
}

int Endpoint::trigger(CallCopy call) { return domain_->deferred_work().trigger(origin(), std::move(call)); }

ssize_t Endpoint::access(protocol::AtomicRmaOp& op, const TxFlags& flags) noexcept {
  apply(flags, op);
  const EpOptions::Limits& limits = options_.limits(Operation::atomic);
  if (const ssize_t error = limits.check(op.length, false)) return error;
  const std::size_t injected = op.inject ? op.length * op.code.operands() : 0;
  if (const ssize_t error = limits.check(injected, true)) return error;
  return post<&engine::Engine::atomic>(op);
}

int Endpoint::get_name(void* address, std::size_t* size) {
  if (original_) return original_->get_name(address, size);
  if (size == nullptr) return -FI_EINVAL;
  if (const int error = ensure_engine()) return error;
  if (roster_entry_) roster_entry_->set_published();
  const SocketAddress& name = connected_end_ != nullptr && !connected_end_->name().empty()
                                  ? connected_end_->name()
                                  : owned_engine_->name();
  return write_sockaddr(name, address, *size) ? 0 : -FI_ETOOSMALL;
}

int Endpoint::set_name(void* address, std::size_t size) {
  if (opened_engine() != nullptr) return -FI_EOPBADSTATE;
  const SocketAddress name = SocketAddress::from(static_cast<const sockaddr*>(address), size);
  if (name.empty()) return -FI_EINVAL;
  requested_name_ = name;
  return 0;
}

void Endpoint::Events::peer_lost(std::uint64_t handle, const SocketAddress& peer, Status cause) {
  const LossEvent event = loss_event(endpoint.fid, handle, peer, cause);
  endpoint.bound_.eq()->report(FI_SHUTDOWN, endpoint.fid, &event,
                               sizeof event);  // a full queue drops the event
}

void Endpoint::report_loss(const SocketAddress& peer, Status cause) {
  const LossEvent event = loss_event(fid, engine::ConnectionEndpoint::kPeer, peer, cause);
  const ConstBytes bytes = as_bytes(&event, sizeof event);
  Eq& eq = *bound_.eq();
  if (!enough_memory_for([&] { eq.add(FI_SHUTDOWN, fid, {bytes.begin(), bytes.end()}); }))
    eq.note_lost_event();
}

void Endpoint::Events::group_joined(void* context) {
  fid_t group = static_cast<fid_t>(context);
  const fi_eq_entry entry{group, group->context, 0};
  endpoint.bound_.eq()->report(FI_JOIN_COMPLETE, *group, &entry, sizeof entry);
}

}  // namespace cluster::api
