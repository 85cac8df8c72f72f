// The agenda. One turn: take in what has arrived, go on with what waited for room, send what that
// made ready. A peer's answers so leave in the turn in which its question came in.
#include "engine/core.h"
#include "os/processor_yield.h"

namespace cluster::engine {
namespace {

/// A turn that has brought something from this node goes back at once; of the others each looks at the time,
/// in ticks. What costs a system call comes once in so many of them (a few microseconds, some hundred, some
/// thousand), and however busy we are once in so many turns.
constexpr std::uint64_t kTicksPerGlance = 1 << 13;
constexpr std::uint64_t kTicksPerAccept = 1 << 20;
constexpr std::uint64_t kTicksPerDeathCheck = 1 << 24;
constexpr std::uint32_t kTurnsPerGlance = 1 << 8;
constexpr std::uint32_t kTurnsPerAccept = 1 << 12;
constexpr std::uint32_t kTurnsPerDeathCheck = 1 << 14;
/// The network is only glanced at (a clock reading, and a cold line or a system call) by who has peers on
/// this node, and has found it silent so many times.
constexpr std::uint32_t kSilentLooks = 1 << 10;

/// Who has taken in more may have lost the processor meanwhile; a clock reading is dear in an exchange of
/// few.
constexpr std::size_t kArrivalsFew = 4;

constexpr Duration kTurnMax = 100ms;
constexpr std::uint32_t kTurnsPerNap = 256;  ///< of one who lingers

}  // namespace

Core::Core(EngineParts parts)
    : parts_(std::move(parts)),
      bodies_(parts_.link != nullptr ? parts_.link->frame_max() : reliability::kFrameMin),
      messenger_({.send_requests_max = parts_.settings.send_requests_max,
                  .eager_credit = parts_.settings.eager_credit,
                  .unexpected_max = parts_.settings.unexpected_max,
                  .pull_window = parts_.settings.pull_window},
                 parts_.environment.counters, *this),
      started_(parts_.environment.clock.now()) {}

Core::~Core() { close(); }

void Core::attach(const AddressTable& book, const protocol::EndpointBindings& bindings) {
  peers_.attach(book);
  messenger_.attach(bindings);
}

/// What send, put, get and atomic have in common: who it is for, the way there, and that it leaves at once,
/// or with those that follow.
template <typename Act>
Status Core::with_peer(std::uint64_t handle, bool more, Act&& act) {
  Peer* peer = peers_.by_handle(handle);
  if (peer == nullptr) return Status::bad_address;
  if (peer->channel.carrier == nullptr && !contact(*peer)) return Status::unreachable;
  const Status status = act(peer->channel);
  if (peer->flow != nullptr) {
    touch(*peer);
    const bool waits = more || (peer->flow->queue().may_coalesce() && packing_.wish());
    if (!waits) transmit_touched(parts_.environment.clock.now());
  }
  mind_sleepers();
  return status;
}

Status Core::send(const protocol::SendOp& order) {
  if (parts_.service == EndpointType::dgram) {
    Peer* peer = peers_.by_handle(order.to);
    return peer == nullptr ? Status::bad_address : send_datagram(*peer, order);
  }
  return with_peer(order.to, order.more,
                   [&](protocol::Channel& channel) { return messenger_.send(channel, order); });
}

Status Core::put(const protocol::WriteOp& order) {
  return with_peer(order.to, order.more,
                   [&](protocol::Channel& channel) { return messenger_.put(channel, order); });
}

Status Core::get(const protocol::ReadOp& order) {
  return with_peer(order.to, order.more,
                   [&](protocol::Channel& channel) { return messenger_.get(channel, order); });
}

Status Core::atomic(const protocol::AtomicRmaOp& order) {
  return with_peer(order.to, order.more,
                   [&](protocol::Channel& channel) { return messenger_.atomic(channel, order); });
}

Status Core::receive(const protocol::RecvOp& order) {
  protocol::Channel* from = nullptr;
  if (order.from != protocol::kAddrUnspec) {
    Peer* peer = peers_.by_handle(order.from);
    if (peer == nullptr) return Status::bad_address;
    from = &peer->channel;
  }
  if (order.peek != protocol::Peek::none) poll();  // a peek that never looks outside sees nothing
  const Status status = messenger_.receive(from, order);
  if (flows_held_ || rings_held_) [[unlikely]]
    take_held_back();
  if (messenger_.control_pending()) transmit_spoken(parts_.environment.clock.now());
  mind_sleepers();
  return status;
}

/// True if something came in.
bool Core::poll(Look look) {
  const std::uint32_t turn = turns_.load(std::memory_order_relaxed) + 1;
  turns_.store(turn, std::memory_order_relaxed);
  bool news = false;
  if (self_in_use_) news |= receive_self();
  if (!locals_.empty()) news |= receive_local(look);
  const bool hurry = news && look == Look::where_due && turn % kTurnsPerGlance != 0;
  const std::uint64_t ticks = hurry ? glance_ : parts_.environment.clock.ticks();
  if (parts_.host != nullptr && !hurry) do_chores(ticks);
  if (parts_.link != nullptr && (look == Look::everywhere || network_due(ticks))) {
    glance_ = ticks;
    news |= poll_network();
  } else if (messenger_.busy()) {
    messenger_.pump();
  }
  if (!doomed_.empty()) {
    lose_doomed();
    news = true;
  }
  mind_sleepers();
  return news;
}

void Core::do_chores(std::uint64_t ticks) {
  if (ticks - accepted_ > kTicksPerAccept || turns_ % kTurnsPerAccept == 0) {
    accepted_ = ticks;
    accept_local();
    if (messenger_.under_way()) knock_where_unheard();
  }
  if (ticks - deaths_checked_ > kTicksPerDeathCheck || turns_ % kTurnsPerDeathCheck == 0) {
    deaths_checked_ = ticks;
    check_local_deaths();
  }
}

/// May somebody over there wait for us, or be waited for? Never denied for long.
bool Core::network_due(std::uint64_t ticks) const {
  const bool silent = silent_looks_ >= kSilentLooks && timers_.next() == kNever &&
                      !messenger_.control_pending() && touched_.empty() &&
                      (remotes_.empty() || !messenger_.busy());
  return !silent || locals_.empty() || ticks - glance_ > kTicksPerGlance || turns_ % kTurnsPerGlance == 0;
}

/// Messages that found no room may find it now.
void Core::take_held_back() {
  rings_held_ = false;
  if (self_in_use_) receive_self();
  receive_local(Look::everywhere);
  if (parts_.link == nullptr) return;
  const Time now = parts_.environment.clock.now();
  resume_held(now);
  if (!touched_.empty()) transmit_touched(now);
}

bool Core::poll_network() {
  Time now{};
  const std::size_t arrivals = receive_network(now);
  if (flows_held_) [[unlikely]]
    resume_held(now);
  if (now >= timers_.next()) run_timers(now);
  if (now >= next_ask_ && asks()) ask_the_silent(now);
  if (messenger_.busy()) {
    for (Peer* peer : remotes_) {
      if (peer->channel.busy) touch(*peer);
    }
  }
  messenger_.pump(now);
  if (arrivals > kArrivalsFew) now = parts_.environment.clock.now();
  transmit_spoken(now);
  return arrivals != 0;
}

/// What the messenger said on its own account (pulls, credits, dones) leaves too.
void Core::transmit_spoken(Time now) {
  messenger_.take_control_pending([this](protocol::Channel& channel) {
    Peer& peer = *static_cast<Peer*>(channel.owner);
    if (peer.flow != nullptr) touch(peer);
  });
  if (!touched_.empty()) transmit_touched(now);
}

/// Everything that a flow learnt this turn takes effect: operations complete, new frames go out.
void Core::transmit_touched(Time now) {
  messenger_.on_transmit(now);
  for (std::size_t i = 0; i < touched_.size(); ++i) {
    if (i != 0) now = parts_.environment.clock.now();  // frames are dated when they leave
    Peer& peer = *touched_[i];
    peer.touched = false;
    reliability::Flow& flow = *peer.flow;
    tokens_.clear();
    flow.take_delivered(tokens_);
    for (const carrier::Token token : tokens_) messenger_.delivered(token);
    if (flow.status() != Status::ok) {
      doom(peer, flow.status());
      continue;
    }
    if (peer.channel.busy) messenger_.pump(peer.channel);
    flow.transmit(now, *parts_.link, reliability::BurstClock(parts_.environment.clock));
    timers_.plan(peer.timer, flow.deadline());
  }
  touched_.clear();
}

Time Core::next_deadline() const {
  const Time timer = std::min(timers_.next(), messenger_.deadline());
  return asks() ? std::min(timer, next_ask_) : timer;
}

/// True if nobody is owed anything: what was promised has left, and what came was acknowledged.
bool Core::quiescent() const {
  if (messenger_.busy()) return false;
  for (const Peer* peer : remotes_) {
    if (peer->flow->status() == Status::ok && !peer->flow->quiet()) return false;
  }
  return true;
}

/// Peers get what they are owed, if they take it in time. Time in which this process was not running is not
/// theirs: between two turns no more than kTurnMax counts.
void Core::linger() {
  Clock& clock = parts_.environment.clock;
  Duration waited{};
  std::uint32_t idle = 0;
  for (Time last = clock.now(); !quiescent() && waited < parts_.settings.linger;) {
    if (!poll()) os::yield_or_sleep(++idle, kTurnsPerNap);
    const Time now = clock.now();
    waited += std::min(now - last, kTurnMax);
    last = now;
  }
}

void Core::close() {
  if (!touched_.empty()) transmit_touched(parts_.environment.clock.now());  // however short the lingering
  linger();
  for (const std::unique_ptr<Peer>& peer : peers_.all()) {
    if (peer->outbox != nullptr) {
      wire::Segment farewell;
      farewell.kind = wire::SegmentKind::farewell;
      peer->outbox->post(farewell, {}, carrier::PayloadMode::copy, 0);
    }
    if (peer->flow != nullptr) peer->flow->close(parts_.environment.clock.now(), *parts_.link);
  }
}

std::uint64_t Core::handle_of(const protocol::Channel& channel) {
  return peers_.handle_of(*static_cast<Peer*>(channel.owner));
}

}  // namespace cluster::engine
