#include "sim/sim_host.h"

#include <algorithm>
#include <cassert>

#include "multipath/link_bundle.h"
#include "protocol/region_table.h"
#include "shm/local_listener.h"
#include "wire/control.h"

namespace cluster::sim {
namespace {

constexpr std::uint64_t kStreamHost = 2;
constexpr std::uint64_t kStreamEngine = 3;
constexpr std::uint64_t kStreamApplication = 4;
/// Real time when a run begins: epochs are made of it.
constexpr std::uint64_t kRealTimeOrigin = 1'700'000'000'000'000'000;
/// How often the progress thread runs an engine that the application does not poll.
constexpr Duration kProgressGapMin = 100us;
constexpr Duration kProgressGapMax = 10ms;

/// What an engine logs is part of the trace.
class TraceLog final : public Log {
 public:
  TraceLog(Trace& trace, HostNumber host) : trace_(trace), host_(host) {}
  bool enabled(LogLevel) const override { return trace_.on(); }
  void write(LogLevel, const char* line) override {
    const AllocationMeter::Scope uncounted(nullptr);
    trace_.line("host %u says: %s", host_, line);
  }

 private:
  Trace& trace_;
  HostNumber host_;
};

bool is_keep_alive(const Packet& packet) {
  return packet.bytes.size() >= sizeof(wire::FrameHeader) &&
         packet.bytes[2] == static_cast<std::byte>(wire::FrameKind::keep_alive);
}

}  // namespace

/// What dies with a process. Queues and counters outlive the engine, which writes to them.
struct SimHost::Process {
  explicit Process(Trace& trace, HostNumber host) : log(trace, host) {}
  void disconnect() {
    for (SimLink* link : links) link->disconnect();
  }
  bool anything_waits() const {
    return std::any_of(links.begin(), links.end(),
                       [](const SimLink* link) { return link->anything_waits(); });
  }

  TraceLog log;
  Counters counters;
  SessionPeers session_peers;
  protocol::CompletionQueue sends;
  protocol::CompletionQueue receives;
  protocol::RegionTable regions;
  std::vector<SimLink*> links;  ///< the engine's, by rail
  std::unique_ptr<Application> application;
  std::unique_ptr<engine::Engine> engine;
};

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

/// A run that is over, or has failed: nothing is judged any more.
SimHost::~SimHost() {
  if (process_ != nullptr) process_->disconnect();
}

Application& SimHost::application() { return *process_->application; }

void SimHost::start(Duration clock_set_back) {
  assert(process_ == nullptr);
  // Epochs count on from real time with the clock of their incarnation: a jump of that is one of theirs, too.
  const bool went_back = clock_set_back > Duration{0} || clock_.has_jumped();
  shared_.oracle.incarnations().begins(number_, shared_.event_queue.now(), went_back);
  const std::uint32_t incarnation = shared_.oracle.incarnations().of(number_);
  shared_.trace.line("host %u begins incarnation %u", number_, incarnation);
  process_ = std::make_unique<Process>(shared_.trace, number_);
  const auto real_time = (shared_.event_queue.now() - clock_set_back).time_since_epoch();
  {
    const AllocationMeter::Scope scope(&memory_);
    std::vector<multipath::Rail> rails;
    std::unique_ptr<link::Link> link = make_link(incarnation, rails);
    process_->engine = std::make_unique<engine::Engine>(engine::EngineParts{
        .environment = {clock_, engine_random_, process_->log, process_->counters},
        .settings = profile_.settings,
        .name = address_of(number_),
        .epoch = kRealTimeOrigin + static_cast<std::uint64_t>(real_time.count()),
        .link = std::move(link),
        .local_listener = nullptr,
        .resources = nullptr,
        .type = shared_.plan.datagrams ? engine::EndpointType::dgram : engine::EndpointType::rdm,
        .rails = std::move(rails)});
    process_->engine->attach(shared_.book, {.sends = &process_->sends,
                                            .receives = &process_->receives,
                                            .regions = &process_->regions,
                                            .want_source = true});
  }
  process_->application = std::make_unique<Application>(
      ApplicationEnvironment{*process_->engine,
                             process_->regions,
                             memory_,
                             shared_.oracle,
                             shared_.remote,
                             shared_.atomics,
                             shared_.trace,
                             shared_.event_queue,
                             shared_.plan,
                             {profile_.frame_max, profile_.settings.net_eager_max},
                             number_,
                             shared_.hosts,
                             incarnation},
      SeededRandom::stream(shared_.seed, kStreamApplication, std::uint64_t{incarnation} << 32 | number_));
  exiting_ = crash_after_success_ = succeeded_ = false;
  paused_until_ = busy_until_ = Time{};
  poll_at_ = kNever;
  wake_now();
}

/// As for an endpoint: several interfaces make a bundle. Datagram endpoints use one.
std::unique_ptr<link::Link> SimHost::make_link(std::uint32_t incarnation,
                                               std::vector<multipath::Rail>& rails) {
  std::vector<std::unique_ptr<link::Link>> links;
  const RailNumber used = shared_.plan.datagrams ? 1 : shared_.network.rails();
  for (RailNumber rail = 0; rail < used; ++rail) {
    auto link = std::make_unique<SimLink>(shared_.network, shared_.oracle, process_->session_peers, number_,
                                          rail, incarnation, profile_.frame_max, profile_.ethertype);
    process_->links.push_back(link.get());
    links.push_back(std::move(link));
    rails.push_back({address_of(number_, rail), kNetworkBits, "rail" + std::to_string(rail)});
  }
  if (shared_.plan.datagrams) rails.clear();
  if (links.size() == 1) return std::move(links.front());
  return std::make_unique<multipath::LinkBundle>(std::move(links));
}

void SimHost::crash() {
  if (process_ == nullptr) return;
  shared_.trace.line("host %u: its process is killed", number_);
  end_process(false);
}

void SimHost::leave() {
  if (process_ == nullptr || exiting_) return;
  shared_.trace.line("host %u closes its endpoint", number_);
  exiting_ = true;
  exit_deadline_ = shared_.event_queue.now() + profile_.linger;
  wake(exit_deadline_);
  wake_now();
}

void SimHost::end_process(bool in_peace) {
  if (!in_peace) process_->disconnect();
  const Counters& ended = process_->counters;
  {
    const AllocationMeter::Scope scope(&memory_);
    process_->engine.reset();
  }
#define COUNTER(name, help) past_.name += ended.name;
#include "base/counters.def"
#undef COUNTER
  process_->application->check_returned_buffers();
  process_.reset();
  shared_.remote.incarnation_ends(number_);
  shared_.atomics.incarnation_ends(number_);
  shared_.oracle.incarnation_ends(number_);
  exiting_ = false;
  poll_at_ = kNever;
  ++poll_number_;
  if (memory_.bytes() != 0) {
    throw SafetyFailure("an engine left " + std::to_string(memory_.bytes()) + " bytes of memory behind");
  }
}

engine::EndpointStats SimHost::insight() const { return *process_->engine->stats(); }

Counters SimHost::counters() const {
  Counters sum = past_;
  if (process_ == nullptr) return sum;
#define COUNTER(name, help) sum.name += process_->counters.name;
#include "base/counters.def"
#undef COUNTER
  return sum;
}

void SimHost::pause(Duration duration, PauseKind absence) {
  if (process_ == nullptr) return;
  shared_.trace.line("host %u is away for %lld us (%s)", number_,
                     static_cast<long long>(duration.count() / 1000),
                     absence == PauseKind::stopped ? "stopped" : "computing");
  paused_until_ = shared_.event_queue.now() + duration;
  pause_kind_ = absence;
  wake(paused_until_);
}

void SimHost::jump_clock(Duration by) {
  shared_.trace.line("host %u: its clock jumps by %lld us", number_,
                     static_cast<long long>(by.count() / 1000));
  clock_.jump(by);
  wake_now();
}

void SimHost::wake_now() { wake(shared_.event_queue.now()); }

void SimHost::wake(Time at) {
  if (process_ == nullptr) return;
  at = std::max({at, busy_until_, shared_.event_queue.now()});
  if (at >= poll_at_) return;
  poll_at_ = at;
  shared_.event_queue.plan(at, *this, ++poll_number_);
}

void SimHost::handle_event(std::uint64_t note) {
  if (note != poll_number_ || process_ == nullptr) return;  // overtaken by an earlier one
  poll_at_ = kNever;
  const Time now = shared_.event_queue.now();
  if (now < paused_until_) {
    if (pause_kind_ != PauseKind::computing) return wake(paused_until_);
    attend();
    if (crash_after_success_ && succeeded_) return crash();
    return wake(std::min(paused_until_, now + random_.between(kProgressGapMin, kProgressGapMax)));
  }
  turn();
  if (crash_after_success_ && succeeded_ && process_ != nullptr) crash();
}

/// The library's own thread takes turns while the application is away. Completions stay in their
/// queues as far as the application goes; the oracle looks at them as they come.
void SimHost::attend() {
  const std::uint64_t refused_before = process_->counters.refused_stale;
  {
    const AllocationMeter::Scope scope(&memory_);
    process_->engine->run_in_background();
  }
  check_wrong_peer_refused(refused_before);
  drain();
}

/// A frame that names a session and comes from another peer than the session's must have been refused.
/// Nothing else was read in that turn.
void SimHost::check_wrong_peer_refused(std::uint64_t refused_before) const {
  if (!process_->session_peers.take_wrong_peer() || process_->counters.refused_stale > refused_before) return;
  throw SafetyFailure(
      "host " + std::to_string(number_) +
      " believes a frame for a session of its own that is from another incarnation than its partner's");
}

void SimHost::turn() {
  const Time now = shared_.event_queue.now();
  Process& process = *process_;
  if (now >= progress_at_) {
    attend();
    progress_at_ = now + random_.between(kProgressGapMin, kProgressGapMax);
  }
  const std::uint64_t frames_before = process.counters.frames_received + process.counters.frames_sent;
  const std::uint64_t refused_before = process.counters.refused_stale;
  {
    const AllocationMeter::Scope scope(&memory_);
    process.engine->poll();
  }
  check_wrong_peer_refused(refused_before);
  most_stored_ = std::max(most_stored_, process.engine->unexpected_messages());
  bool acted = drain();
  if (exiting_ && (process.engine->quiescent() || now >= exit_deadline_)) {
    shared_.trace.line("host %u: its process ends", number_);
    return end_process(true);
  }
  if (!exiting_) {
    acted = process.application->turn() || acted;
    acted = drain() || acted;
  }
  const std::uint64_t frames =
      process.counters.frames_received + process.counters.frames_sent - frames_before;
  busy_until_ = now + profile_.frame_cost * static_cast<std::int64_t>(frames);
  if (acted || frames != 0 || process.anything_waits()) {
    wake(busy_until_ + random_.between(Duration{1}, profile_.poll_gap));
    return;
  }
  // A deadline that is due and led to nothing is not asked for again at once.
  wake(std::max(clock_.when(process.engine->next_deadline()), now + profile_.poll_gap));
  if (exiting_) {
    wake(exit_deadline_);
  } else {
    wake(process.application->wake_at());
  }
}

/// The application reads its completion queues.
bool SimHost::drain() {
  const auto all = [](const protocol::Completion&) { return true; };
  std::vector<protocol::Completion> sends;
  std::vector<protocol::Completion> receives;
  constexpr std::size_t everything = ~std::size_t{0};
  process_->sends.drain(everything, all, [&](const protocol::Completion& c) { sends.push_back(c); });
  process_->receives.drain(everything, all, [&](const protocol::Completion& c) { receives.push_back(c); });
  if (sends.empty() && receives.empty()) return false;
  succeeded_ = std::any_of(sends.begin(), sends.end(),
                           [](const protocol::Completion& c) { return c.status == Status::ok; }) ||
               succeeded_;
  for (const protocol::Completion& completion : receives) process_->application->complete(completion);
  for (const protocol::Completion& completion : sends) process_->application->complete(completion);
  return true;
}

bool SimHost::take(std::unique_ptr<Packet>& packet) {
  if (process_ == nullptr) return false;
  const Time now = shared_.event_queue.now();
  if (is_keep_alive(*packet)) {
    const bool somebody_there = now >= paused_until_ || pause_kind_ != PauseKind::stopped;
    if (somebody_there) answer_keep_alive(*packet);
    shared_.network.recycle(std::move(packet));
    return true;
  }
  if (last_frame_ != Time{}) longest_stall_ = std::max(longest_stall_, now - last_frame_);
  last_frame_ = now;
  process_->links[packet->rail]->arrive(packet);
  if (now >= paused_until_) wake(now + random_.between(Duration{1}, profile_.poll_gap));
  return true;
}

/// The keep-alive responder does: it shares nothing with the engine, and is there while the application is not.
void SimHost::answer_keep_alive(const Packet& packet) {
  wire::FrameView view;
  if (wire::admit(packet.bytes, view) != wire::Refusal::none) return;
  const wire::ControlFrame answer = wire::ControlFrame::alive(view.sequence.value);
  const link::Path path{address_of(packet.from, packet.rail), {}, false};
  link::OutFrame frame;
  frame.path = &path;
  frame.add(answer.bytes());
  shared_.network.send(number_, packet.rail, shared_.oracle.incarnations().of(number_), frame);
}

void SimHost::path_error(const link::PathError& complaint) {
  if (process_ != nullptr) process_->links[rail_of(complaint.peer)]->hear(complaint);
}

}  // namespace cluster::sim
