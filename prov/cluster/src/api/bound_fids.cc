#include "api/bound_fids.h"

#include <utility>

namespace cluster::api {
namespace {

constexpr std::uint64_t kCqFlags = FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION;
constexpr std::uint64_t kRemoteEvents = FI_REMOTE_READ | FI_REMOTE_WRITE;
constexpr std::uint64_t kCntrFlags = FI_SEND | FI_RECV | FI_READ | FI_WRITE | kRemoteEvents;

/// Returns true if `caps` include messages in this direction (FI_SEND or FI_RECV). If `caps` name no
/// direction, they include both.
bool has_messages(std::uint64_t caps, std::uint64_t direction) {
  return (caps & (FI_MSG | FI_TAGGED)) && ((caps & direction) || !(caps & (FI_SEND | FI_RECV)));
}

/// Returns true if `caps` include access to the memory of peers. If `caps` name no direction of remote
/// access, they include all directions.
bool initiates_rma(std::uint64_t caps) {
  constexpr std::uint64_t kInitiator = FI_READ | FI_WRITE;
  return (caps & (FI_RMA | FI_ATOMIC)) && ((caps & kInitiator) || !(caps & (kInitiator | kRemoteEvents)));
}

}  // namespace

int BoundFids::bind(fid_t object, std::uint64_t flags) {
  switch (object->fclass) {
    case FI_CLASS_CQ: return bind_cq(object_of<Cq>(object), flags);
    case FI_CLASS_CNTR: return bind_cntr(object_of<Cntr>(object), flags);
    case FI_CLASS_EQ: eq_.set(object_of<Eq>(object)); return 0;
    case FI_CLASS_STX_CTX:
      if (&object_of<SharedTx>(object).domain() != &domain_ || shared_tx_) return -FI_EINVAL;
      shared_tx_ = true;
      return 0;
    case FI_CLASS_SRX_CTX: {
      SharedRx& shared = object_of<SharedRx>(object);
      if (&shared.domain() != &domain_ || shared_rx_) return -FI_EINVAL;
      shared_rx_.set(shared);
      return 0;
    }
    case FI_CLASS_AV: {
      Av& av = object_of<Av>(object);
      if (&av.domain() != &domain_ || av_) return -FI_EINVAL;
      av_.set(av);
      return 0;
    }
    default: return -FI_EINVAL;
  }
}

int BoundFids::bind_cq(Cq& cq, std::uint64_t flags) {
  if (flags & ~kCqFlags) return -FI_EBADFLAGS;
  if (!(flags & (FI_TRANSMIT | FI_RECV)) || &cq.domain() != &domain_) return -FI_EINVAL;
  if (((flags & FI_TRANSMIT) && tx_cq_) || ((flags & FI_RECV) && rx_cq_)) return -FI_EINVAL;
  const bool selective = flags & FI_SELECTIVE_COMPLETION;
  if (flags & FI_TRANSMIT) {
    tx_cq_.set(cq);
    tx_selective_ = selective;
  }
  if (flags & FI_RECV) {
    rx_cq_.set(cq);
    rx_selective_ = selective;
  }
  return 0;
}

/// Accepts FI_REMOTE_READ and FI_REMOTE_WRITE even without FI_RMA_EVENT, because some programs bind one
/// counter to all events and do not ask for that capability.
int BoundFids::bind_cntr(Cntr& cntr, std::uint64_t flags) {
  if (flags & ~kCntrFlags) return -FI_EBADFLAGS;
  if (&cntr.domain() != &domain_) return -FI_EINVAL;
  constexpr std::pair<std::uint64_t, Event> kEventOf[] = {
      {FI_SEND, send},
      {FI_RECV, receive},
      {FI_WRITE, write},
      {FI_READ, read},
      {FI_REMOTE_WRITE, remote_write},
      {FI_REMOTE_READ, remote_read},
  };
  for (const auto& [flag, event] : kEventOf) {
    if ((flags & flag) && cntr_of_[event] != nullptr) return -FI_EINVAL;
  }
  cntrs_.push_back(std::make_unique<Ref<Cntr>>(cntr));
  for (const auto& [flag, event] : kEventOf) {
    if (flags & flag) cntr_of_[event] = &cntr;
  }
  return 0;
}

int BoundFids::check_complete(const EpOptions& options) const {
  Log& log = domain_.platform().log();
  const std::uint64_t caps = options.caps();
  if (options.connects() && !eq_) {
    log.warn(
        "fi_enable: this FI_EP_MSG endpoint has no event queue; call fi_ep_bind with an event queue first");
    return -FI_ENOEQ;
  }
  if (!options.connects() && !av_) {
    log.warn("fi_enable: no address vector is bound; call fi_ep_bind with an address vector first");
    return -FI_ENOAV;
  }
  if ((has_messages(caps, FI_SEND) || initiates_rma(caps) || (caps & FI_COLLECTIVE)) && !tx_cq_) {
    log.warn("fi_enable: no completion queue is bound for transmits; call fi_ep_bind with FI_TRANSMIT first");
    return -FI_ENOCQ;
  }
  // With FI_RMA_EVENT no queue for receives is required, because the application may use only counters and
  // never post a receive.
  if (has_messages(caps, FI_RECV) && !rx_cq_ && !(caps & FI_RMA_EVENT)) {
    log.warn("fi_enable: no completion queue is bound for receives; call fi_ep_bind with FI_RECV first");
    return -FI_ENOCQ;
  }
  return 0;
}

CompletionMode BoundFids::completion_mode() const {
  return {tx_selective_, rx_selective_, cntr_of_[send] != nullptr};
}

protocol::CompletionQueue* BoundFids::queue_for(protocol::Completion::Kind kind) const {
  const Ref<Cq>& cq = kind == protocol::Completion::Kind::receive ? rx_cq_ : tx_cq_;
  return cq ? &cq->queue() : nullptr;
}

void BoundFids::report_failure(const protocol::Completion& completion) const {
  using Kind = protocol::Completion::Kind;
  const Event event = completion.kind == Kind::send                                     ? send
                      : completion.kind == Kind::receive                                ? receive
                      : completion.kind == Kind::read || completion.kind == Kind::fetch ? read
                                                                                        : write;
  if (protocol::CompletionQueue* const queue = queue_for(completion.kind)) queue->push(completion);
  if (protocol::Counter* const counter = counter_of(event)) counter->count(completion.status);
}

protocol::Counter* BoundFids::counter_of(Event event) const {
  return cntr_of_[event] == nullptr ? nullptr : &cntr_of_[event]->counter();
}

protocol::EndpointBindings BoundFids::engine_bindings(const EpOptions& options) const {
  const std::uint64_t caps = options.caps();
  protocol::EndpointBindings bindings;
  if (tx_cq_) bindings.tx_queue = &tx_cq_->queue();
  if (rx_cq_) bindings.rx_queue = &rx_cq_->queue();
  bindings.send_counter = counter_of(send);
  bindings.receive_counter = counter_of(receive);
  bindings.write_counter = counter_of(write);
  bindings.read_counter = counter_of(read);
  bindings.remote_access.writes = counter_of(remote_write);
  bindings.remote_access.reads = counter_of(remote_read);
  if (caps & (FI_RMA | FI_ATOMIC)) bindings.regions = &domain_.regions();
  if (shared_rx_) bindings.shared_receives = &shared_rx_->receives();
  bindings.selects_receives = rx_selective_;
  bindings.joins_teams = caps & FI_COLLECTIVE;
  bindings.want_source = caps & FI_SOURCE;
  bindings.report_unknown_source = (caps & FI_SOURCE) && (caps & FI_SOURCE_ERR);
  bindings.ordering = options.ordering();
  return bindings;
}

template <typename Visit>
void BoundFids::each_progress(Visit&& visit) const {
  if (tx_cq_) visit(tx_cq_->progress());
  if (rx_cq_) visit(rx_cq_->progress());
  for (const auto& cntr : cntrs_) visit((*cntr)->progress());
}

void BoundFids::add_engine(engine::Engine& engine, const EpOptions& options) const {
  each_progress([&](Progress& progress) { progress.add(engine); });
  const bool waits_for_events = options.connects() || (options.caps() & FI_COLLECTIVE);
  if (waits_for_events && eq_) eq_->progress().add(engine);
  if (shared_rx_) shared_rx_->add_engine(engine, rx_cq_ ? &rx_cq_->queue() : nullptr, counter_of(receive));
}

void BoundFids::remove_engine(engine::Engine& engine) const {
  each_progress([&](Progress& progress) { progress.remove(engine); });
  if (eq_) eq_->progress().remove(engine);
  if (shared_rx_) shared_rx_->remove_engine(engine);
}

}  // namespace cluster::api
