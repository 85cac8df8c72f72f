// An endpoint gets what it reports to, and comes to life; at its end the queues forget it first.
#include <rdma/fi_cm.h>

#include "api/endpoint.h"
#include "api/ops_tables.h"

namespace cluster::api {
namespace {

constexpr std::uint64_t kCqFlags = FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION;
constexpr std::uint64_t kRemoteEvents = FI_REMOTE_READ | FI_REMOTE_WRITE;
constexpr std::uint64_t kCntrFlags = FI_SEND | FI_RECV | FI_READ | FI_WRITE;

/// Does an endpoint with these capabilities go this way? Neither direction named means both.
bool uses(std::uint64_t caps, std::uint64_t direction) {
  return (caps & (FI_MSG | FI_TAGGED)) && ((caps & direction) || !(caps & (FI_SEND | FI_RECV)));
}

/// Does it read or write the memory of peers? Who names no direction goes every way.
bool reaches_out(std::uint64_t caps) {
  constexpr std::uint64_t kOutward = FI_READ | FI_WRITE;
  return (caps & (FI_RMA | FI_ATOMIC)) && ((caps & kOutward) || !(caps & (kOutward | kRemoteEvents)));
}

}  // namespace

Endpoint::~Endpoint() {
  if (original_) {
    const std::lock_guard guard(original_->aliases_lock_);
    std::erase(original_->aliases_, this);
  }
  if (engine_ != nullptr && enabled_) {
    if (send_cq_) send_cq_->progress().remove(*engine_);
    if (receive_cq_) receive_cq_->progress().remove(*engine_);
    for (const auto& cntr : cntrs_) (*cntr)->progress().remove(*engine_);
    domain_->mr_progress().leave(*engine_);
  }
  engine_.reset();  // while all it reports to is still held
}

int Endpoint::bind(fid_t object, std::uint64_t flags) {
  if (object == nullptr) return -FI_EINVAL;
  if (enabled_) return -FI_EOPBADSTATE;
  switch (object->fclass) {
    case FI_CLASS_CQ: return bind_cq(object_of<Cq>(object), flags);
    case FI_CLASS_CNTR: return bind_cntr(object_of<Cntr>(object), flags);
    case FI_CLASS_EQ: eq_.set(object_of<Eq>(object)); return 0;
    case FI_CLASS_AV: {
      Av& av = object_of<Av>(object);
      if (&av.domain() != domain_.get() || av_) return -FI_EINVAL;
      av_.set(av);
      return 0;
    }
    default: return -FI_EINVAL;
  }
}

int Endpoint::bind_cq(Cq& cq, std::uint64_t flags) {
  if (flags & ~kCqFlags) return -FI_EBADFLAGS;
  if (!(flags & (FI_TRANSMIT | FI_RECV)) || &cq.domain() != domain_.get()) return -FI_EINVAL;
  if (((flags & FI_TRANSMIT) && send_cq_) || ((flags & FI_RECV) && receive_cq_)) return -FI_EINVAL;
  const bool selective = flags & FI_SELECTIVE_COMPLETION;
  if (flags & FI_TRANSMIT) {
    send_cq_.set(cq);
    send_selective_ = selective;
  }
  if (flags & FI_RECV) {
    receive_cq_.set(cq);
    receive_selective_ = selective;
  }
  update_flags();
  return 0;
}

/// One counter per kind of event. Events of remote memory are counted for whoever binds a counter, also if
/// FI_RMA_EVENT was not asked for: programs bind one counter to everything that may arrive.
int Endpoint::bind_cntr(Cntr& cntr, std::uint64_t flags) {
  if (flags & ~(kCntrFlags | kRemoteEvents)) return -FI_EBADFLAGS;
  if (&cntr.domain() != domain_.get()) return -FI_EINVAL;
  const std::pair<std::uint64_t, Cntr**> places[] = {
      {FI_SEND, &send_cntr_},
      {FI_RECV, &receive_cntr_},
      {FI_WRITE, &write_cntr_},
      {FI_READ, &read_cntr_},
      {FI_REMOTE_WRITE, &remote_write_cntr_},
      {FI_REMOTE_READ, &remote_read_cntr_},
  };
  for (const auto& [flag, place] : places) {
    if ((flags & flag) && *place != nullptr) return -FI_EINVAL;
  }
  cntrs_.push_back(std::make_unique<Ref<Cntr>>(cntr));
  for (const auto& [flag, place] : places) {
    if (flags & flag) *place = &cntr;
  }
  update_flags();
  return 0;
}

int Endpoint::check_complete() const {
  Log& log = domain_->platform().log();
  if (!av_) {
    log.warn("fi_enable: no address vector is bound; call fi_ep_bind with one first");
    return -FI_ENOAV;
  }
  if ((uses(caps_, FI_SEND) || reaches_out(caps_)) && !send_cq_) {
    log.warn("fi_enable: no completion queue is bound for transmits; call fi_ep_bind with FI_TRANSMIT first");
    return -FI_ENOCQ;
  }
  // Who has asked for events of remote memory hears of arrivals by counters and may never receive.
  const bool hears_otherwise = (caps_ & FI_RMA_EVENT) != 0;
  if (uses(caps_, FI_RECV) && !receive_cq_ && !hears_otherwise) {
    log.warn("fi_enable: no completion queue is bound for receives; call fi_ep_bind with FI_RECV first");
    return -FI_ENOCQ;
  }
  return 0;
}

/// The engine is built when its name is needed, at the latest by enable().
int Endpoint::ensure_engine() {
  if (engine_ != nullptr) return 0;
  int error = 0;
  engine_ = domain_->platform().build_engine(requested_name_, service_, error);
  if (engine_ != nullptr && domain_->automatic()) engine_->enable_auto_progress();
  if (engine_ != nullptr) return 0;
  return error > 0 ? -error : -FI_EOTHER;
}

int Endpoint::enable() {
  if (enabled_) return 0;
  if (const int error = check_complete()) return error;
  if (const int error = ensure_engine()) return error;
  protocol::EndpointBindings bindings;
  if (send_cq_) bindings.sends = &send_cq_->queue();
  if (receive_cq_) bindings.receives = &receive_cq_->queue();
  const auto counter = [](Cntr* cntr) { return cntr == nullptr ? nullptr : &cntr->counter(); };
  bindings.send_counter = counter(send_cntr_);
  bindings.receive_counter = counter(receive_cntr_);
  bindings.write_counter = counter(write_cntr_);
  bindings.read_counter = counter(read_cntr_);
  bindings.remote_write_counter = counter(remote_write_cntr_);
  bindings.remote_read_counter = counter(remote_read_cntr_);
  if (caps_ & (FI_RMA | FI_ATOMIC)) bindings.regions = &domain_->regions();
  bindings.want_source = caps_ & FI_SOURCE;
  bindings.report_unknown_source = (caps_ & FI_SOURCE) && (caps_ & FI_SOURCE_ERR);
  bindings.ordering = ordering_;
  engine_->attach(av_->book(), bindings);
  if (send_cq_) send_cq_->progress().add(*engine_);
  if (receive_cq_) receive_cq_->progress().add(*engine_);
  for (const auto& cntr : cntrs_) (*cntr)->progress().add(*engine_);
  if (bindings.regions != nullptr) domain_->mr_progress().join(*engine_);
  install_ops(*engine_);
  const std::lock_guard guard(aliases_lock_);
  for (Endpoint* alias : aliases_) alias->install_ops(*engine_);
  return 0;
}

/// From now on the calls that matter lead to the engine. An alias may be older than the queues.
void Endpoint::install_ops(engine::Engine& engine) {
  if (original_) {
    send_selective_ = original_->send_selective_;
    receive_selective_ = original_->receive_selective_;
    send_cntr_ = original_->send_cntr_;
    update_flags();
  }
  enabled_ = true;
  live_engine_ = &engine;
  if (caps_ & FI_MSG) msg = &msg_ops;
  if (caps_ & FI_TAGGED) tagged = &tagged_ops;
  if (caps_ & FI_RMA) rma = &rma_ops;
  if (caps_ & FI_ATOMIC) atomic = &atomic_ops;
}

/// A receive that cannot be found has been matched already: that is no error, its completion comes.
ssize_t Endpoint::cancel(void* context) {
  if (!enabled_) return -FI_EOPBADSTATE;
  engine_->cancel(context);
  return 0;
}

}  // namespace cluster::api
