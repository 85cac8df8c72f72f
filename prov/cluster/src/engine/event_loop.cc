#include "engine/event_loop.h"

#include "base/end_of_memory.h"
#include "os/wait_set.h"
#include "protocol/pending_operations.h"

namespace cluster::engine {

using transport::Transport;
using transport::Turn;

namespace {

/// As long as memory, or space in the unexpected store, is missing, the engine takes turns at this interval.
/// No event announces that memory or space is free again.
constexpr Duration kTurnRetry = 10ms;

constexpr Duration kTurnMax = 100ms;
/// drain_on_close() sleeps once in this many turns without arrivals. After the other turns it only yields the
/// processor.
constexpr std::uint32_t kTurnsPerSleep = 256;
/// How long a closing endpoint waits for acknowledgements from peers outside the address vector. The time is
/// enough to retransmit a lost frame several times. The limit is needed because any host can be such a peer
/// and may never acknowledge.
constexpr Duration kLingerForUnknown = 250ms;

}  // namespace

bool EventLoop::run_by_clock() {
  run_once(PollScope::due);
  return true;
}

/// If memory runs out, the turn ends, and the next turn continues the work (base/end_of_memory.h). An
/// endpoint that is not enabled yet has no address vector to check senders, and no queue for completions.
/// Until it is enabled, arrivals wait in its sockets.
bool EventLoop::run_once(PollScope scope) {
  if (!peers_.attached()) [[unlikely]]
    return false;
  bool brought = false;
  ended_early_ = !enough_memory_for([&] { brought = take_turn(scope); });
  if (ended_early_) [[unlikely]] {
    ++parts_.environment.counters.no_memory;
    disturb();
  }
  return brought;
}

inline bool EventLoop::take_turn(PollScope scope) {
  Turn turn(scope, turns() + 1, parts_.environment.clock);
  turns_.store(turn.number(), std::memory_order_relaxed);
  turn.watchful = groups_.active();
  for (Transport* const each : transports()) turn.note(each->receive(turn));
  if (groups_.active()) turn.note(groups_.run());
  if (!turn.now) read_clock(turn);
  if (turn.now && *turn.now >= next_review_ && messenger_.under_way()) review_waiting(*turn.now);
  if (messenger_.busy()) {
    for (Transport* const each : transports()) each->before_pump();
  }
  if (turn.now) {
    messenger_.pump(*turn.now);
  } else if (messenger_.busy()) {
    messenger_.pump();
  }
  mark_control();
  for (Transport* const each : transports()) each->transmit(turn);
  if (!peers_.failed().empty()) {
    reach_.close_failed();
    turn.note(true);
  }
  protocol::InternalListener* const internal = messenger_.bindings().engine.internal;
  if (internal != nullptr && internal->pending()) internal->advance();
  calm_turns_ = short_turns_ = 0;
  if (network_ != nullptr && few_sources()) short_turns_ = Turn::kTurnsPerFullLook - 1;
  if (lane_ != nullptr && calm()) {
    calm_turns_ = lane_->peers().reads_all() ? Turn::kTurnsPerFullLook - 1 : kTurnsPerQuietRings - 1;
    if (!turn.hurries()) ticks_ = turn.ticks();
    rest_ = Transport::kTicksPerLookAlone;
    for (const Transport* const each : transports()) {
      rest_ = std::min(rest_, each->ticks_between_looks());
    }
  }
  wake_sleepers();
  return turn.brought();
}

/// Called if no transport has read the clock. Reads it if an operation is in progress, because the operation
/// may wait for time to pass. Turns that follow each other closely read the clock only occasionally.
void EventLoop::read_clock(Turn& turn) {
  if (turn.hurries() || !messenger_.under_way()) return;
  if (turn.scope() == PollScope::due && turn.ticks() - clock_read_at_ <= Transport::kTicksPerLook) return;
  clock_read_at_ = turn.ticks();
  turn.now = parts_.environment.clock.now();
}

/// Contacts the peers for which receives wait. Notes the current time in new operations, for reports.
void EventLoop::review_waiting(Time now) {
  next_review_ = now + kReviewInterval;
  // A datagram endpoint has no sessions: its peer would refuse the call, and the receive would fail.
  contact_awaited_ = parts_.type == EndpointType::rdm && reach_.contact_awaited(now);
  note(messenger_.matcher(), now);
  for (const std::unique_ptr<Peer>& peer : peers_.all()) note(peer->channel, now);
}

bool EventLoop::calm() const {
  return !lane_->peers().rings().empty() && messenger_.idle_but_for_accesses() && !groups_.active() &&
         all_of([](const Transport& each) { return each.may_be_skipped(); });
}

bool EventLoop::few_sources() const {
  const bool rings = lane_ != nullptr && !lane_->peers().rings().empty();
  return !rings && network_->takes_short_turns() && messenger_.idle_but_for_accesses() &&
         !messenger_.rma().pending() && !messenger_.device_reading() && !groups_.active() && !holding();
}

/// Tells the transports which peers have new control segments. The next flush() or transmit() sends these
/// segments.
void EventLoop::mark_control() {
  messenger_.control().take_pending([](protocol::Channel& channel) {
    Peer& peer = transport::peer_of(channel);
    if (Transport* const transport = peer.transport()) transport->mark(peer);
  });
}

void EventLoop::flush_control() {
  mark_control();
  for (Transport* const each : transports()) each->flush();
}

void EventLoop::deliver_held() {
  disturb();
  for (Transport* const each : transports()) {
    if (each->holding()) each->receive_held(turns());
  }
  if (groups_.holding()) groups_.deliver_held();
  for (Transport* const each : transports()) each->flush();
}

/// The time in which this process did not run must not count as waiting. So at most kTurnMax is counted
/// between two turns.
void EventLoop::drain_on_close() {
  Clock& clock = parts_.environment.clock;
  reach_.begin_close();
  for (Transport* const each : transports()) {
    each->flush();  // so that messages leave even if `linger` is short
    each->begin_close();
  }
  Duration waited{};
  std::uint32_t idle = 0;
  const auto owes_nothing = [&] {
    if (waited < kLingerForUnknown) return quiescent();
    const auto of_member = [&](const protocol::Channel& channel) { return peers_.is_member(channel); };
    return !messenger_.busy(of_member) && groups_.quiescent() &&
           all_of([](const Transport& each) { return each.quiescent(transport::Towards::members); });
  };
  for (Time last = clock.now(); !owes_nothing() && waited < parts_.settings.linger;) {
    if (!run_once()) os::yield_or_sleep(++idle, kTurnsPerSleep);
    const Time now = clock.now();
    waited += std::min(now - last, kTurnMax);
    last = now;
  }
}

Time EventLoop::next_deadline() const {
  Time next = std::min(messenger_.deadline(), groups_.deadline());
  if (contact_awaited_ && messenger_.under_way()) next = std::min(next, next_review_);
  for (const Transport* const each : transports()) next = std::min(next, each->deadline());
  return next;
}

/// Pending remote accesses alone cause no turn, unless their transport wants turns for them.
Time EventLoop::next_turn() const {
  const bool waits = ended_early_ || wants_turns() || holding();
  return std::min(next_deadline(), waits ? parts_.environment.clock.now() + kTurnRetry : kNever);
}

bool EventLoop::arm() {
  if (!peers_.attached() || !waiter_.open()) return false;
  handle_events();
  waiter_.begin_arming();
  bool ready = true;
  for (Transport* const each : transports()) ready &= each->prepare_sleep();
  if (run_once() || !ready || !waiter_.complete()) return false;
  waiter_.set_alarm_by(next_turn(), parts_.environment.clock.now());
  waiter_.end_arming(turns());
  return true;
}

void EventLoop::handle_events() {
  disturb();
  waiter_.dispatch();
}

/// Sets the alarm so that sleeping threads wake in time for the work that the current call of the application
/// has caused.
void EventLoop::wake_by_deadline() {
  const AfterTurn* const after = messenger_.bindings().after_turn;
  const bool now = !peers_.failed().empty() || (after != nullptr && after->due()) ||
                   !all_of([](const Transport& each) { return !each.wants_turn(); });
  waiter_.set_alarm_if_earlier(now ? Time::min() : next_turn());
}

}  // namespace cluster::engine
