#include "engine/event_loop.h"

#include <algorithm>
#include <array>
#include <new>
#include <span>

#include "os/process_fence.h"
#include "os/processor_yield.h"
#include "protocol/pending_operations.h"

namespace cluster::engine {
namespace {

/// A tick is a nanosecond or a fraction of it (Clock::ticks): this is 0.3 to 1 ms.
constexpr std::uint64_t kTicksPerLocalCheck = 1 << 20;
constexpr std::uint32_t kTurnsPerLocalCheck = 1 << 12;
/// An endpoint with peers on this node that has found the network silent so many times polls it seldom (a
/// clock reading, and a cold line or a system call).
constexpr std::uint32_t kEmptyPolls = 1 << 10;
constexpr std::uint32_t kEmptyPollsAlone = 1 << 5;  ///< the same without any peer over the network

/// A turn that took in more may have lost the processor meanwhile; a clock reading is too expensive in an
/// exchange of few frames.
constexpr std::size_t kArrivalsFew = 4;

/// A process that has connected sends its hello at once; it may be stopped in between.
constexpr Duration kHelloDelay = 1ms;

/// Nothing tells when there is memory again, or space in the unexpected store.
constexpr Duration kMemoryRetry = 10ms;

constexpr Duration kTurnMax = 100ms;
constexpr std::uint32_t kTurnsPerSleep = 256;  ///< of drain_on_close()
/// So long a closing endpoint waits for peers outside the address vector to acknowledge: a frame that was lost is repeated
/// several times meanwhile. Any host can be one, and need not ever acknowledge.
constexpr Duration kLingerForUnknown = 250ms;

}  // namespace

/// No remote peer can wait for this endpoint or be waited for.
inline bool EventLoop::network_silent() const {
  return network_.empty_polls() >= (tx_.flows().empty() ? kEmptyPollsAlone : kEmptyPolls) && tx_.next_timer() == kNever &&
         !messenger_.control().pending() && !tx_.tx_pending() && !groups_.active() &&
         (tx_.flows().empty() || !messenger_.busy());
}

/// False while the network is silent; never for long.
inline bool EventLoop::network_due(std::uint64_t ticks, std::uint32_t turn) const {
  if (local_.rings().empty() || ticks - last_.network_poll > ticks_per_poll() || turn % kTurnsPerPoll == 0)
    return true;
  return !network_silent();
}

bool EventLoop::run_by_clock() {
  run_once(PollScope::due);
  return true;
}

/// What one turn had no memory for the next one takes up. An endpoint that has a name, but is not enabled, has no address vector
/// by which to judge senders, and nowhere to report to: what comes waits in its sockets.
bool EventLoop::run_once(PollScope scope) {
  if (!peers_.attached()) [[unlikely]]
    return false;
  try {
    last_turn_.ended_early = false;
    return take_turn(scope);
  } catch (const std::bad_alloc&) {
    ++parts_.environment.counters.no_memory;
    last_turn_.ended_early = true;
    disturb();
    return false;
  }
}

inline bool EventLoop::take_turn(PollScope scope) {
  const std::uint32_t turn = turns() + 1;
  turns_.store(turn, std::memory_order_relaxed);
  bool received = local_.receive(scope, turn);
  // What local peers brought is handed up soon: connections, deaths and a silent network can wait.
  const bool only_local = received && scope == PollScope::due && turn % kTurnsPerPoll != 0;
  const std::uint64_t ticks = only_local ? last_.network_poll : parts_.environment.clock.ticks();
  if (!messenger_.rma().posted().idle()) {
    messenger_.rma().posted().settle(only_local ? std::nullopt : std::optional(ticks));
  }
  const bool local_check_due = ticks - last_.local_check > kTicksPerLocalCheck || turn % kTurnsPerLocalCheck == 0;
  if (parts_.local_listener != nullptr && !only_local && local_check_due) check_local_peers(ticks);
  if (parts_.link != nullptr && (scope == PollScope::all || network_due(ticks, turn))) {
    last_.network_poll = ticks;
    received |= poll_network();
  } else {
    if (parts_.link == nullptr && groups_.active()) received |= groups_.run();
    if (messenger_.busy()) messenger_.pump();
  }
  if (parts_.link == nullptr) last_.network_poll = ticks;  // run_calm() has nothing else to poll
  if (!peers_.failed().empty()) {
    lost_.closer().close_failed();
    received = true;
  }
  protocol::CollectiveListener* const collectives = messenger_.message_parts().context.bindings.engine.collectives;
  if (collectives != nullptr && collectives->pending()) collectives->advance();
  const bool calm = !local_.rings().empty() && !local_.holding() && !local_.self_pending() &&
                    messenger_.idle_but_for_writes() &&
                    (parts_.link != nullptr ? network_silent() : !groups_.active());
  last_turn_.calm_turns = !calm ? 0 : local_.reads_all() ? kTurnsPerPoll - 1 : kTurnsPerQuietRings - 1;
  wake_sleepers();
  return received;
}

void EventLoop::check_local_peers(std::uint64_t ticks) {
  last_.local_check = ticks;
  lost_.carriers().accept();
  lost_.carriers().advance_greetings();
  if (messenger_.under_way()) local_.ring_unheard();
  if (deaths_.due(ticks, turns())) deaths_.check_some(ticks, parts_.environment.clock.now());
}

bool EventLoop::poll_network() {
  Time now{};
  std::size_t arrivals = network_.receive(now);
  if (network_.holding()) [[unlikely]]
    network_.receive_held(now);
  if (now >= tx_.next_timer() && tx_.run_timers(now)) network_.read_path_errors(now, false);
  if (now >= sessions_.next_reminder() && sessions_.reminder_wanted()) {
    sessions_.remind_idle_peers(now);
    lost_.contact_awaited(now);
    hosts_.review(*peers_.attached());
    note(messenger_.matcher(), now);
    for (const std::unique_ptr<Peer>& peer : peers_.all()) note(peer->channel, now);
  }
  if (groups_.active() && groups_.run()) ++arrivals;
  tx_.pump(now);
  if (arrivals > kArrivalsFew) now = parts_.environment.clock.now();
  tx_.transmit_control(now);
  return arrivals != 0;
}

void EventLoop::deliver_held() {
  local_.receive_held(turns());
  if (groups_.holding()) groups_.deliver_held();
  if (parts_.link == nullptr) return;
  const Time now = parts_.environment.clock.now();
  network_.receive_held(now);
  if (tx_.tx_pending()) tx_.transmit(now);
}

/// Time in which this process was not running is not the peers': between two turns at most kTurnMax counts.
void EventLoop::drain_on_close() {
  Clock& clock = parts_.environment.clock;
  if (tx_.tx_pending()) tx_.transmit(clock.now());  // however short the limit is
  tx_.disregard_turns();
  Duration waited{};
  std::uint32_t idle = 0;
  const auto owes_nothing = [&] {
    if (waited < kLingerForUnknown) return quiescent();
    const auto of_member = [&](const protocol::Channel& channel) { return peers_.is_member(channel); };
    return !messenger_.busy(of_member) && tx_.quiescent(TxScheduler::Towards::members) && groups_.quiescent();
  };
  for (Time last = clock.now(); !owes_nothing() && waited < parts_.settings.linger;) {
    if (!run_once()) os::yield_or_sleep(++idle, kTurnsPerSleep);
    const Time now = clock.now();
    waited += std::min(now - last, kTurnMax);
    last = now;
  }
}

Time EventLoop::next_deadline() const {
  const Time timer =
      std::min({tx_.next_timer(), messenger_.deadline(), deaths_.next_check(), groups_.deadline(), network_.deadline()});
  return sessions_.reminder_wanted() ? std::min(timer, sessions_.next_reminder()) : timer;
}

bool EventLoop::arm() {
  if (!peers_.attached() || !waiter_.open(peers_)) return false;
  handle_events();
  const bool recalled = messenger_.rma().posted().recall();
  waiter_.begin_arming();
  if (local_.request_doorbells()) os::fence_processes();
  if (parts_.link != nullptr) parts_.link->before_sleep();
  if (run_once() || !recalled || !waiter_.complete()) return false;
  Time wake = next_deadline();
  if (parts_.local_listener != nullptr && (parts_.local_listener->has_half_open() || lost_.carriers().owes_answers())) {
    wake = std::min(wake, parts_.environment.clock.now() + kHelloDelay);
  }
  if (awaits_memory()) wake = std::min(wake, parts_.environment.clock.now() + kMemoryRetry);
  waiter_.set_alarm_by(wake, parts_.environment.clock.now());
  waiter_.end_arming(turns());
  return true;
}

void EventLoop::handle_events() {
  disturb();
  std::array<Waiter::Event, Waiter::kEventsMax> events;
  const std::size_t count = waiter_.collect(events);
  for (const Waiter::Event& event : std::span(events).first(count)) {
    switch (event.source) {
      case Waiter::Source::connection: lost_.carriers().accept(); break;
      case Waiter::Source::path_error: network_.read_path_errors(parts_.environment.clock.now(), true); break;
      case Waiter::Source::doorbell:
        parts_.local_listener->clear_doorbell();
        deaths_.check_closed();
        break;
      case Waiter::Source::multicast: groups_.on_wake(); break;
      case Waiter::Source::peer:
        lost_.carriers().advance_greetings();
        deaths_.check(*event.peer);
        break;
    }
  }
}

/// A thread that sleeps does not know what has just been done here.
void EventLoop::wake_by_deadline() {
  const bool local_busy = (messenger_.busy() && !local_.rings().empty()) || !messenger_.rma().posted().idle();
  const bool now = local_.self_pending() || local_busy || !peers_.failed().empty();
  waiter_.set_alarm_if_earlier(now ? Time::min() : next_deadline());
}

}  // namespace cluster::engine
