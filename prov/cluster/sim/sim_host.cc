#include "sim/sim_host.h"

#include <algorithm>
#include <cassert>

#include "link/bundle.h"
#include "protocol/regions.h"
#include "shm/host.h"
#include "wire/control.h"

namespace cluster::sim {
namespace {

constexpr std::uint64_t kStreamHost = 2;
constexpr std::uint64_t kStreamEngine = 3;
constexpr std::uint64_t kStreamApplication = 4;
/// Real time when a run begins: epochs are made of it.
constexpr std::uint64_t kRealTimeOrigin = 1'700'000'000'000'000'000;
/// How often an attendant looks after an engine that nobody polls.
constexpr Duration kAttendGapMin = 100us;
constexpr Duration kAttendGapMax = 10ms;

/// What an engine logs is part of the trace.
class TraceLog final : public Log {
 public:
  TraceLog(Trace& trace, HostNumber host) : trace_(trace), host_(host) {}
  bool enabled(LogLevel) const override { return trace_.on(); }
  void write(LogLevel, const char* line) override {
    const MemoryAccount::Scope nobody(nullptr);
    trace_.line("host %u says: %s", host_, line);
  }

 private:
  Trace& trace_;
  HostNumber host_;
};

bool is_probe(const Packet& packet) {
  return packet.bytes.size() >= sizeof(wire::FrameHeader) &&
         packet.bytes[2] == static_cast<std::byte>(wire::FrameKind::probe);
}

}  // namespace

/// What dies with a process. Queues and counters outlive the engine, which writes to them.
struct SimHost::Process {
  explicit Process(Trace& trace, HostNumber host) : log(trace, host) {}
  void unplug() {
    for (SimLink* link : links) link->unplug();
  }
  bool anything_waits() const {
    return std::any_of(links.begin(), links.end(),
                       [](const SimLink* link) { return link->anything_waits(); });
  }

  TraceLog log;
  Counters counters;
  SessionPartners partners;
  protocol::CompletionQueue sends;
  protocol::CompletionQueue receives;
  protocol::Regions regions;
  std::vector<SimLink*> links;  ///< the engine's, by rail
  std::unique_ptr<Application> application;
  std::unique_ptr<engine::Engine> engine;
};

SimHost::SimHost(const World& world, HostNumber number, const HostProfile& profile)
    : world_(world),
      number_(number),
      profile_(profile),
      clock_(world.timetable, profile.clock_ahead),
      dice_(Dice::stream(world.seed, kStreamHost, number)),
      engine_dice_(Dice::stream(world.seed, kStreamEngine, number)) {
  profile_.settings.linger = Duration{0};  // a process that leaves waits here, in simulated time
  world_.network.connect(number, *this);
}

/// A run that is over, or has failed: nobody judges any more.
SimHost::~SimHost() {
  if (process_ != nullptr) process_->unplug();
}

Application& SimHost::application() { return *process_->application; }

void SimHost::start(Duration clock_set_back) {
  assert(process_ == nullptr);
  // Epochs count on from real time with the clock of their life: a jump of that is one of theirs, too.
  const bool went_back = clock_set_back > Duration{0} || clock_.has_jumped();
  world_.oracle.lives().begins(number_, world_.timetable.now(), went_back);
  const std::uint32_t life = world_.oracle.lives().of(number_);
  world_.trace.line("host %u begins life %u", number_, life);
  process_ = std::make_unique<Process>(world_.trace, number_);
  const auto real_time = (world_.timetable.now() - clock_set_back).time_since_epoch();
  {
    const MemoryAccount::Scope scope(&account_);
    std::vector<rails::OwnRail> rails;
    std::unique_ptr<link::Link> link = make_link(life, rails);
    process_->engine = std::make_unique<engine::Engine>(
        engine::Parts{.environment = {clock_, engine_dice_, process_->log, process_->counters},
                      .settings = profile_.settings,
                      .name = address_of(number_),
                      .epoch = kRealTimeOrigin + static_cast<std::uint64_t>(real_time.count()),
                      .link = std::move(link),
                      .host = nullptr,
                      .keeper = nullptr,
                      .rails = std::move(rails)});
    process_->engine->attach(world_.book, {.sends = &process_->sends,
                                           .receives = &process_->receives,
                                           .regions = &process_->regions,
                                           .want_source = true});
  }
  process_->application = std::make_unique<Application>(
      Surroundings{*process_->engine,
                   process_->regions,
                   account_,
                   world_.oracle,
                   world_.remote,
                   world_.trace,
                   world_.timetable,
                   world_.plan,
                   {profile_.frame_max, profile_.settings.net_eager_max},
                   number_,
                   world_.hosts,
                   life},
      Dice::stream(world_.seed, kStreamApplication, std::uint64_t{life} << 32 | number_));
  leaving_ = fated_ = succeeded_ = false;
  frozen_until_ = busy_until_ = Time{};
  poll_at_ = kNever;
  wake_now();
}

/// As for an endpoint: several interfaces make a bundle.
std::unique_ptr<link::Link> SimHost::make_link(std::uint32_t life, std::vector<rails::OwnRail>& rails) {
  std::vector<std::unique_ptr<link::Link>> links;
  for (RailNumber rail = 0; rail < world_.network.rails(); ++rail) {
    auto link = std::make_unique<SimLink>(world_.network, world_.oracle, process_->partners, number_, rail,
                                          life, profile_.frame_max, profile_.shortcut);
    process_->links.push_back(link.get());
    links.push_back(std::move(link));
    rails.push_back({address_of(number_, rail), kNetworkBits, "rail" + std::to_string(rail)});
  }
  if (links.size() == 1) return std::move(links.front());
  return std::make_unique<link::Bundle>(std::move(links));
}

void SimHost::crash() {
  if (process_ == nullptr) return;
  world_.trace.line("host %u: its process is killed", number_);
  end_process(false);
}

void SimHost::leave() {
  if (process_ == nullptr || leaving_) return;
  world_.trace.line("host %u closes its endpoint", number_);
  leaving_ = true;
  leave_by_ = world_.timetable.now() + profile_.linger;
  wake(leave_by_);
  wake_now();
}

void SimHost::end_process(bool in_peace) {
  if (!in_peace) process_->unplug();
  const Counters& ended = process_->counters;
  {
    const MemoryAccount::Scope scope(&account_);
    process_->engine.reset();
  }
#define COUNTER(name, help) past_.name += ended.name;
#include "base/counters.def"
#undef COUNTER
  process_->application->check_buffers();
  process_.reset();
  world_.remote.life_ends(number_);
  world_.oracle.life_ends(number_);
  leaving_ = false;
  poll_at_ = kNever;
  ++poll_number_;
  if (account_.bytes() != 0) {
    throw SafetyFailure("an engine left " + std::to_string(account_.bytes()) + " bytes of memory behind");
  }
}

engine::Insight SimHost::insight() const { return *process_->engine->insight(); }

Counters SimHost::counters() const {
  Counters sum = past_;
  if (process_ == nullptr) return sum;
#define COUNTER(name, help) sum.name += process_->counters.name;
#include "base/counters.def"
#undef COUNTER
  return sum;
}

void SimHost::freeze(Duration duration, Absence absence) {
  if (process_ == nullptr) return;
  world_.trace.line("host %u is away for %lld us (%s)", number_,
                    static_cast<long long>(duration.count() / 1000),
                    absence == Absence::stopped ? "stopped" : "computing");
  frozen_until_ = world_.timetable.now() + duration;
  absence_ = absence;
  wake(frozen_until_);
}

void SimHost::jump_clock(Duration by) {
  world_.trace.line("host %u: its clock jumps by %lld us", number_,
                    static_cast<long long>(by.count() / 1000));
  clock_.jump(by);
  wake_now();
}

void SimHost::wake_now() { wake(world_.timetable.now()); }

void SimHost::wake(Time at) {
  if (process_ == nullptr) return;
  at = std::max({at, busy_until_, world_.timetable.now()});
  if (at >= poll_at_) return;
  poll_at_ = at;
  world_.timetable.plan(at, *this, ++poll_number_);
}

void SimHost::happen(std::uint64_t note) {
  if (note != poll_number_ || process_ == nullptr) return;  // overtaken by an earlier one
  poll_at_ = kNever;
  const Time now = world_.timetable.now();
  if (now < frozen_until_) {
    if (absence_ != Absence::computing) return wake(frozen_until_);
    attend();
    if (fated_ && succeeded_) return crash();
    return wake(std::min(frozen_until_, now + dice_.between(kAttendGapMin, kAttendGapMax)));
  }
  turn();
  if (fated_ && succeeded_ && process_ != nullptr) crash();
}

/// The library's own thread takes turns while the application is away. Completions stay in their
/// queues as far as the application goes; the oracle looks at them as they come.
void SimHost::attend() {
  const std::uint64_t refused_before = process_->counters.refused_stale;
  {
    const MemoryAccount::Scope scope(&account_);
    process_->engine->attend();
  }
  check_stranger(refused_before);
  drain();
}

/// Whoever answers in the place of a session's partner has been refused. Nothing else was read in that turn.
void SimHost::check_stranger(std::uint64_t refused_before) const {
  if (!process_->partners.take_stranger() || process_->counters.refused_stale > refused_before) return;
  throw SafetyFailure(
      "host " + std::to_string(number_) +
      " believes a frame for a session of its own that is from another life than its partner's");
}

void SimHost::turn() {
  const Time now = world_.timetable.now();
  Process& process = *process_;
  if (now >= attend_at_) {
    attend();
    attend_at_ = now + dice_.between(kAttendGapMin, kAttendGapMax);
  }
  const std::uint64_t frames_before = process.counters.frames_received + process.counters.frames_sent;
  const std::uint64_t refused_before = process.counters.refused_stale;
  {
    const MemoryAccount::Scope scope(&account_);
    process.engine->poll();
  }
  check_stranger(refused_before);
  most_stored_ = std::max(most_stored_, process.engine->unexpected_messages());
  bool acted = drain();
  if (leaving_ && (process.engine->settled() || now >= leave_by_)) {
    world_.trace.line("host %u: its process ends", number_);
    return end_process(true);
  }
  if (!leaving_) {
    acted = process.application->turn() || acted;
    acted = drain() || acted;
  }
  const std::uint64_t frames =
      process.counters.frames_received + process.counters.frames_sent - frames_before;
  busy_until_ = now + profile_.frame_cost * static_cast<std::int64_t>(frames);
  if (acted || frames != 0 || process.anything_waits()) {
    wake(busy_until_ + dice_.between(Duration{1}, profile_.poll_gap));
    return;
  }
  // A deadline that is due and led to nothing is not asked for again at once.
  wake(std::max(clock_.when(process.engine->next_deadline()), now + profile_.poll_gap));
  if (leaving_) {
    wake(leave_by_);
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
                           [](const protocol::Completion& c) { return c.fault == Fault::none; }) ||
               succeeded_;
  for (const protocol::Completion& completion : receives) process_->application->complete(completion);
  for (const protocol::Completion& completion : sends) process_->application->complete(completion);
  return true;
}

bool SimHost::take(std::unique_ptr<Packet>& packet) {
  if (process_ == nullptr) return false;
  const Time now = world_.timetable.now();
  if (is_probe(*packet)) {
    const bool somebody_there = now >= frozen_until_ || absence_ != Absence::stopped;
    if (somebody_there) answer_probe(*packet);
    world_.network.recycle(std::move(packet));
    return true;
  }
  if (last_frame_ != Time{}) longest_stall_ = std::max(longest_stall_, now - last_frame_);
  last_frame_ = now;
  process_->links[packet->rail]->arrive(packet);
  if (now >= frozen_until_) wake(now + dice_.between(Duration{1}, profile_.poll_gap));
  return true;
}

/// The keeper does: it shares nothing with the engine, and is there while the application is not.
void SimHost::answer_probe(const Packet& packet) {
  wire::FrameView view;
  if (wire::admit(packet.bytes, view) != wire::Refusal::none) return;
  const wire::ControlFrame answer = wire::ControlFrame::alive(view.sequence.value);
  const link::Path path{address_of(packet.from, packet.rail), {}, false};
  link::OutFrame frame;
  frame.path = &path;
  frame.add(answer.bytes());
  world_.network.send(number_, packet.rail, world_.oracle.lives().of(number_), frame);
}

void SimHost::hear_complaint(const link::Complaint& complaint) {
  if (process_ != nullptr) process_->links[rail_of(complaint.peer)]->hear(complaint);
}

}  // namespace cluster::sim
