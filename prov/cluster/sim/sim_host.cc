#include "sim/sim_host.h"

#include <algorithm>
#include <cassert>
#include <string>
#include <utility>

#include "relay/keep_alive_answer.h"
#include "wire/control.h"

namespace cluster::sim {
namespace {

constexpr std::uint64_t kStreamHost = 2;
constexpr std::uint64_t kStreamEngine = 3;
/// The real time when a run begins. Epochs are made of it.
constexpr std::uint64_t kRealTimeOrigin = 1'700'000'000'000'000'000;
/// How often the progress thread runs an engine that the application does not poll.
constexpr Duration kProgressGapMin = 100us;
constexpr Duration kProgressGapMax = 10ms;
/// Parts in a million of the removals of a device.
constexpr std::uint32_t kRemovalNoticed = 700'000;

}  // namespace

SimHost::SimHost(const SharedParts& shared, HostNumber number, const HostProfile& profile)
    : shared_(shared),
      number_(number),
      profile_(profile),
      clock_(shared.event_queue, profile.clock_ahead),
      random_(SeededRandom::stream(shared.seed, kStreamHost, number)),
      engine_random_(SeededRandom::stream(shared.seed, kStreamEngine, number)) {
  profile_.settings.linger = Duration{0};  // a process that leaves waits here, in simulated time
  shared_.network.connect(number, *this);
}

/// The run is over or has failed, so nothing is judged any more.
SimHost::~SimHost() {
  if (process_ != nullptr) process_->disconnect();
}

void SimHost::start(Duration clock_set_back) {
  assert(process_ == nullptr);
  // An engine makes its epochs of the real time at its start and of its clock. If this clock has jumped, the
  // epochs of the next incarnation may be earlier.
  const bool went_back = clock_set_back > Duration{0} || clock_.has_jumped();
  const Time now = shared_.event_queue.now();
  shared_.oracle.incarnations().begins(number_, now, went_back);
  shared_.trace.line("host %u begins incarnation %u", number_, shared_.oracle.incarnations().of(number_));
  if (shared_.network.joins_devices()) shared_.network.replace_queue_pair(number_);
  const auto real_time = (now - clock_set_back).time_since_epoch();
  const std::uint64_t epoch = kRealTimeOrigin + static_cast<std::uint64_t>(real_time.count());
  process_ = std::make_unique<SimProcess>(shared_, profile_, number_, epoch, clock_, engine_random_, memory_);
  crash_after_success_ = false;
  pause_.until = Time{};
  shared_.network.port(number_).powered = true;
  wake_now();
}

void SimHost::crash(bool powered) {
  if (process_ == nullptr) return;
  shared_.trace.line("host %u: its process is killed%s", number_,
                     powered ? "" : ", and the host has no power");
  shared_.network.port(number_).powered = powered;
  process_->disconnect();
  end_process();
}

void SimHost::crash_after_success() {
  crash_after_success_ = true;
  process_->clear_success();
}

void SimHost::leave() {
  if (process_ == nullptr || exiting()) return;
  shared_.trace.line("host %u closes its endpoint", number_);
  exit_deadline_ = shared_.event_queue.now() + profile_.linger;
  wake(*exit_deadline_);
  wake_now();
}

void SimHost::end_process() {
  process_->close();
#define COUNTER(name, help) record_.ended.name += process_->counters().name;
#include "base/counters.def"
#undef COUNTER
  process_.reset();
  shared_.rma.incarnation_ends(number_);
  shared_.atomics.incarnation_ends(number_);
  shared_.oracle.incarnation_ends(number_);
  exit_deadline_.reset();
  next_poll_.cancel();
  if (memory_.bytes() != 0) {
    throw SafetyFailure("an engine left " + std::to_string(memory_.bytes()) + " bytes of memory behind");
  }
}

Counters SimHost::counters() const {
  Counters sum = record_.ended;
  if (process_ == nullptr) return sum;
#define COUNTER(name, help) sum.name += process_->counters().name;
#include "base/counters.def"
#undef COUNTER
  return sum;
}

void SimHost::pause(Duration duration, PauseKind kind) {
  if (process_ == nullptr) return;
  shared_.trace.line("host %u is away for %lld us (%s)", number_,
                     static_cast<long long>(duration.count() / 1000),
                     kind == PauseKind::stopped ? "stopped" : "computing");
  pause_ = {shared_.event_queue.now() + duration, shared_.event_queue.now() + duration, kind};
  wake(pause_.until);
}

void SimHost::resume() {
  pause_.last = std::min(pause_.last, shared_.event_queue.now());
  pause_.until = Time{};
}

void SimHost::jump_clock(Duration by) {
  shared_.trace.line("host %u: its clock jumps by %lld us", number_,
                     static_cast<long long>(by.count() / 1000));
  clock_.jump(by);
  wake_now();
}

void SimHost::wake_now() { wake(shared_.event_queue.now()); }

void SimHost::wake(Time at) {
  if (process_ != nullptr) next_poll_.move_to(at, shared_.event_queue, *this);
}

void SimHost::handle_event(std::uint64_t note) {
  if (process_ == nullptr || !next_poll_.begin(note)) return;
  const Time now = shared_.event_queue.now();
  if (now < pause_.until) {
    if (pause_.kind != PauseKind::computing) return wake(pause_.until);
    process_->run_progress_thread();
    if (crash_after_success_ && process_->has_succeeded()) return crash();
    return wake(std::min(pause_.until, now + random_.between(kProgressGapMin, kProgressGapMax)));
  }
  turn();
  if (process_ != nullptr && crash_after_success_ && process_->has_succeeded()) crash();
}

void SimHost::turn() {
  const Time now = shared_.event_queue.now();
  SimProcess& process = *process_;
  if (now >= progress_at_) {
    process.run_progress_thread();
    progress_at_ = now + random_.between(kProgressGapMin, kProgressGapMax);
  }
  const Counters& counters = process.counters();
  const std::uint64_t frames_before = counters.frames_received + counters.frames_sent;
  process.poll();
  record_.most_unexpected = std::max(record_.most_unexpected, process.engine().unexpected_messages());
  bool acted = process.read_completions();
  if (exiting() && (process.engine().quiescent() || now >= *exit_deadline_)) {
    shared_.trace.line("host %u: its process ends", number_);
    return end_process();
  }
  if (!exiting()) {
    acted = process.application().turn() || acted;
    acted = process.read_completions() || acted;
  }
  wait_after_turn(acted, counters.frames_received + counters.frames_sent - frames_before);
}

void SimHost::wait_after_turn(bool acted, std::uint64_t frames) {
  const Time now = shared_.event_queue.now();
  const Time busy_until = now + profile_.frame_cost * static_cast<std::int64_t>(frames);
  next_poll_.set_busy_until(busy_until);
  if (acted || frames != 0 || process_->has_frames()) {
    return wake(busy_until + random_.between(Duration{1}, profile_.poll_gap));
  }
  // If a deadline is due but led to nothing, the host does not poll again at once.
  wake(std::max(clock_.when(process_->engine().next_deadline()), now + profile_.poll_gap));
  wake(std::max(shared_.devices.due(number_), now + profile_.poll_gap));
  wake(exiting() ? *exit_deadline_ : process_->application().wake_at());
}

void SimHost::readdress(RailNumber rail, bool back) {
  shared_.network.readdress(number_, rail, back);
  process_->link(rail).note_move();
  wake_now();
}

void SimHost::remove_device() {
  const RailNumber rail = shared_.network.device_rail();
  Port& port = shared_.network.port(number_, rail);
  if (std::exchange(port.down, true)) return;
  shared_.network.replace_queue_pair(number_);
  if (process_ == nullptr || !process_->has_link(rail)) return;
  process_->link(rail).lose_device(random_.chance(kRemovalNoticed));
  wake_now();
}

void SimHost::return_device() {
  const RailNumber rail = shared_.network.device_rail();
  if (!std::exchange(shared_.network.port(number_, rail).down, false)) return;
  if (process_ == nullptr || !process_->has_link(rail)) return;
  process_->link(rail).note_move();
  wake_now();
}

bool SimHost::deliver(std::unique_ptr<Packet>& packet) {
  if (process_ == nullptr) {
    const bool powered = shared_.network.port(number_).powered;
    if (!powered) shared_.network.recycle(std::move(packet));
    return !powered;
  }
  const Time now = shared_.event_queue.now();
  const bool paused = now < pause_.until;
  if (!process_->has_link(packet->rail)) {  // an attacker does not know how many rails the host has
    shared_.network.recycle(std::move(packet));
    return true;
  }
  const Thinner::Place place =
      packet->by_device ? Thinner::Place::engine : process_->link(packet->rail).place_of(*packet);
  if (place == Thinner::Place::responder || place == Thinner::Place::nowhere) {
    const bool stopped = paused && pause_.kind == PauseKind::stopped;
    if (place == Thinner::Place::responder && !stopped) answer_keep_alive(*packet);
    shared_.network.recycle(std::move(packet));
    return true;
  }
  if (record_.last_frame != Time{}) {
    record_.longest_stall = std::max(record_.longest_stall, now - record_.last_frame);
  }
  record_.last_frame = now;
  process_->link(packet->rail).arrive(packet, place);
  if (!paused && place == Thinner::Place::engine) wake(now + random_.between(Duration{1}, profile_.poll_gap));
  return true;
}

/// Answers in place of the keep-alive responder. It shares nothing with the engine, and runs while the
/// application is away.
void SimHost::answer_keep_alive(const Packet& packet) {
  const link::Path path{source_of(packet), {}, false};
  link::OutFrame frame;
  frame.path = &path;
  std::array<std::byte, relay::kAnswerMax> sealed;
  wire::FrameView view;
  std::optional<wire::ControlFrame> plain;
  if (profile_.credentials) {
    const SocketAddress asked = shared_.network.present_address(number_, packet.rail);
    const std::size_t size =
        relay::answer_keep_alive(*profile_.credentials, packet.bytes, address_of(number_), asked, sealed);
    if (size == 0) return;
    frame.add(ConstBytes(sealed).first(size));
  } else {
    if (wire::admit(packet.bytes, view) != wire::Refusal::none) return;
    frame.add(plain.emplace(wire::ControlFrame::alive(view)).bytes());
  }
  shared_.network.send(number_, packet.rail, shared_.oracle.incarnations().of(number_), frame);
}

void SimHost::deliver_path_error(const link::PathError& error) {
  if (process_ == nullptr || !process_->has_link(rail_of(error.peer))) return;
  process_->link(rail_of(error.peer)).add_path_error(error);
}

}  // namespace cluster::sim
