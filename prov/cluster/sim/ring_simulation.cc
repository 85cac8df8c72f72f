#include "sim/ring_simulation.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>

#include "sim/failure.h"

namespace cluster::sim {
namespace {

constexpr os::RingLayout kLayout{2048, 1};
constexpr Duration kSettleMax = 60s;
constexpr std::uint64_t kStepsMax = 2'000'000;
constexpr unsigned kCallsMax = 25;  ///< a member makes about so many calls of the kernel

std::uint64_t note_of(int what, std::size_t process) {
  return static_cast<std::uint64_t>(what) << 32 | process;
}

}  // namespace

/// The kernel as one process sees it. The process may die before or after each call has its effect.
class RingSimulation::Kernel final : public os::RingKernel {
 public:
  Kernel(RingSimulation& simulation, std::size_t process)
      : all_(simulation), self_(simulation.processes_[process]), holder_(process + 1) {}

 private:
  template <typename Effect>
  auto call(const Effect& effect) {
    die_perhaps();
    auto result = effect();
    die_perhaps();
    return result;
  }
  void die_perhaps() {
    if (self_.calls_left != 0 && --self_.calls_left == 0) throw Killed();
  }

  bool lives(std::uint32_t process) override {
    return call([&] {
      return std::ranges::any_of(all_.processes_,
                                 [&](const Process& each) { return each.number == process; });
    });
  }
  int open(std::uint64_t serial) override {
    return call([&] {
      all_.kernel_.open(serial, holder_);
      self_.serial = serial;
      return 0;
    });
  }
  bool inherit(std::uint64_t serial) override {
    return call([&] {
      if (!all_.kernel_.holds(serial, RingKernelModel::kKeeper)) return false;
      self_.serial = serial;
      return all_.kernel_.hold(serial, holder_);
    });
  }
  int enter_fanout(bool fresh, std::uint32_t& id) override {
    return call([&] {
      if (fresh) id = all_.kernel_.make_fanout();
      all_.kernel_.enter_fanout(self_.serial, id);
      return 0;
    });
  }
  std::optional<std::size_t> sockets_in_fanout(std::uint32_t id) override {
    return call([&] { return std::optional(all_.kernel_.sockets_in_fanout(id)); });
  }
  int keep(std::uint64_t serial) override {
    return call([&] {
      all_.kernel_.hold(serial, RingKernelModel::kKeeper);
      return 0;
    });
  }
  void withdraw(std::span<const std::uint64_t> serials) override {
    for (const std::uint64_t serial : serials) {
      call([&] {
        all_.kernel_.close(serial, RingKernelModel::kKeeper);
        return 0;
      });
    }
  }

  RingSimulation& all_;
  Process& self_;
  RingKernelModel::Holder holder_;
};

RingSimulation::RingSimulation(const RunOptions& options) : random_(SeededRandom::stream(options.seed, 'R')) {
  plan_.members =
      options.hosts != 0 ? options.hosts : random_.between(2, random_.chance(kMillion / 4) ? 48 : 10);
  plan_.troubles = random_.between(20, 200);
  if (options.faults != "none") {
    plan_.dies_in_step = static_cast<std::uint32_t>(random_.below(kMillion / 2));
    plan_.flaps = random_.chance(kMillion / 2) ? kMillion / 20 : 0;
  }
  char text[160];
  std::snprintf(text, sizeof text, "rings of %zu members, %zu troubles, %u %% die in a step, %s",
                plan_.members, plan_.troubles, plan_.dies_in_step / 10'000,
                plan_.flaps != 0 ? "flaps" : "no flaps");
  description_ = text;
}

void RingSimulation::plan(Duration after, What what, std::size_t process) {
  events_.plan(events_.now() + after, *this, note_of(static_cast<int>(what), process));
}

std::optional<std::size_t> RingSimulation::any(bool (*wanted)(const Process&)) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    if (wanted(processes_[i])) found.push_back(i);
  }
  if (found.empty()) return std::nullopt;
  return found[random_.below(found.size())];
}

void RingSimulation::start_one() {
  Process process;
  const std::size_t number = processes_.size();
  const std::array<std::byte, 4> ip{std::byte{10}, std::byte{0}, std::byte{0}, std::byte{1}};
  process.address = SocketAddress::v4(ip.data(), static_cast<std::uint16_t>(1024 + (number * 7919) % 60'000));
  if (!over_ && random_.chance(plan_.dies_in_step))
    process.calls_left = static_cast<unsigned>(random_.between(1, kCallsMax));
  processes_.push_back(process);
  plan(random_.between(0us, 3ms), What::next, number);
}

/// Two processes join, two die at the same time, one leaves, or the interface goes down and comes up.
void RingSimulation::make_trouble() {
  const auto alive = [](const Process& each) { return each.state < State::left && !each.leaves; };
  const auto population =
      static_cast<std::size_t>(std::count_if(processes_.begin(), processes_.end(), alive));
  if (plan_.flaps != 0 && random_.chance(plan_.flaps) && kernel_.up()) {
    kernel_.set_up(false);
    plan(random_.between(1ms, 50ms), What::flap, 0);
  } else if (population < plan_.members) {
    start_one();
    start_one();
  } else if (random_.chance(kMillion / 3)) {
    processes_[*any(alive)].leaves = true;
  } else {
    for (int i = 0; i < 2; ++i) {
      if (const std::optional<std::size_t> one = any(alive)) kill(*one);
    }
  }
  if (--plan_.troubles != 0) {
    plan(random_.between(100us, 30ms), What::trouble, 0);
    return;
  }
  over_ = true;
  for (Process& each : processes_) each.calls_left = 0;
}

/// Kills a process. The kernel then releases its locks and closes its sockets in any order.
void RingSimulation::kill(std::size_t process) {
  Process& one = processes_[process];
  one.state = State::dead;
  ++deaths_;
  if (installer_ == process && random_.chance(kMillion / 2))
    handle_event(note_of(static_cast<int>(What::effect), process));
  plan(random_.between(0us, 5ms), What::unlock, process);
  plan(random_.between(0us, 20ms), What::closed, process);
}

bool RingSimulation::take(std::size_t process) {
  Process& one = processes_[process];
  Kernel kernel(*this, process);
  if (table_ == nullptr) table_ = std::make_unique<os::RingTable>();
  os::RingSteps steps(*table_, 0, kernel);
  steps.free_dead();
  std::uint32_t number = 1;
  const auto locked = [&](const Process& each) { return each.number == number; };
  while (std::any_of(processes_.begin(), processes_.end(), locked)) ++number;
  one.number = number;
  os::RingSteps(*table_, 0, kernel).free_dead();
  std::string reason;
  const std::optional<os::RingSteps::Taken> taken =
      os::RingSteps(*table_, number, kernel)
          .take(os::RingKind::v4, one.address, kLayout, 2, {os::kRingsMax, 4096}, reason);
  if (!taken) throw SafetyFailure("a process gets no place: " + reason);
  one.inherited = taken->inherited;
  kernel_.set_filter(taken->serial, one.address);
  return true;
}

void RingSimulation::begin_install(std::size_t process) {
  Process& one = processes_[process];
  if (list().installed >= one.wanted) {
    one.state = State::works;
    plan(0ms, What::next, process);
    return;
  }
  if (installer_) return plan(random_.between(500us, 1500us), What::next, process);
  installer_ = process;
  Kernel kernel(*this, process);
  one.program = os::RingSteps(*table_, one.number, kernel).program(os::RingKind::v4);
  plan(random_.between(0ms, 6ms), What::effect, process);
  plan(6ms, What::installed, process);
}

void RingSimulation::end_install(std::size_t process) {
  Process& one = processes_[process];
  if (one.state == State::dead) return;
  list().installed = one.program.version;
  installer_.reset();
  plan(0ms, What::next, process);
}

void RingSimulation::leave(std::size_t process) {
  Process& one = processes_[process];
  Kernel kernel(*this, process);
  kernel_.set_filter(one.serial, SocketAddress());
  os::RingSteps(*table_, one.number, kernel).leave(os::RingKind::v4, one.serial);
  one.state = State::left;
  plan(0ms, What::unlock, process);
  plan(random_.between(0us, 1ms), What::closed, process);
}

/// Makes the next step of a process. The process dies here if its calls are used up.
void RingSimulation::step(std::size_t process) {
  Process& one = processes_[process];
  if (one.state >= State::left) return;
  try {
    switch (one.state) {
      case State::starts:
        take(process);
        one.state = State::makes;
        plan(random_.between(100us, 8ms), What::next, process);
        return;
      case State::makes:
        one.state = one.inherited ? State::installs : State::enters;
        if (one.inherited) one.wanted = list().changes;
        plan(0ms, What::next, process);
        return;
      case State::enters: {
        std::string reason;
        Kernel kernel(*this, process);
        if (os::RingSteps(*table_, one.number, kernel).enter(os::RingKind::v4, one.serial, reason)) {
          one.state = State::installs;
          one.wanted = list().changes;
        }
        if (!reason.empty()) throw SafetyFailure("a ring does not enter: " + reason);
        plan(1ms, What::next, process);
        return;
      }
      case State::installs: return begin_install(process);
      case State::works:
        if (one.leaves) return leave(process);
        plan(random_.between(500us, 5ms), What::next, process);
        return;
      case State::left:
      case State::dead: return;
    }
  } catch (const Killed&) {
    kill(process);
  }
}

/// The last process of the group has ended. The table and the keeper of the group end with it.
void RingSimulation::end_group() {
  kernel_.close(RingKernelModel::kKeeper);
  table_.reset();
  installer_.reset();
}

void RingSimulation::check_frame() {
  const auto alive = [](const Process& each) { return each.state < State::left; };
  const std::optional<std::size_t> addressee = any(alive);
  if (!addressee || !kernel_.up()) return;
  ++frames_;
  const Process& one = processes_[*addressee];
  const std::vector<std::uint64_t> receivers = kernel_.deliver(one.address);
  if (std::ranges::any_of(receivers, [&](std::uint64_t socket) { return socket != one.serial; }))
    throw SafetyFailure("a frame reached the ring of another process");
  if (one.state == State::works && receivers.empty())
    throw SafetyFailure("a frame did not reach the ring of a member that works");
}

void RingSimulation::handle_event(std::uint64_t note) {
  const std::size_t process = note & 0xffffffff;
  switch (static_cast<What>(note >> 32)) {
    case What::trouble: return make_trouble();
    case What::frame:
      check_frame();
      plan(random_.between(10us, 400us), What::frame, 0);
      return;
    case What::next: return step(process);
    case What::effect: {
      const Process& one = processes_[process];
      if (installer_ != process || !kernel_.holds(one.serial, process + 1)) return;
      return kernel_.install(kernel_.fanout_of(one.serial), one.program.program);
    }
    case What::installed: return end_install(process);
    case What::unlock:
      processes_[process].number = 0;
      if (installer_ == process) installer_.reset();
      return;
    case What::closed:
      kernel_.close(process + 1);
      processes_[process].open = false;
      if (std::ranges::none_of(processes_,
                               [](const Process& each) { return each.open && each.state != State::starts; }))
        end_group();
      return;
    case What::flap: return kernel_.set_up(true);
  }
}

/// Returns true if every process that lives has its ring, and those that leave have left.
bool RingSimulation::settled() const {
  return over_ && kernel_.up() && std::ranges::all_of(processes_, [](const Process& each) {
           return each.state == State::works ? !each.leaves : !each.open;
         });
}

RunReport RingSimulation::run() {
  for (std::size_t i = 0; i < plan_.members; ++i) start_one();
  plan(20ms, What::trouble, 0);
  plan(0ms, What::frame, 0);
  Time end = kNever;
  for (int round = 0; round < 2; ++round) {  // in the second, all leave
    while (!settled() || events_.now() < Time(20ms)) {
      events_.step();
      if (over_ && end == kNever) end = events_.now() + kSettleMax;
      if (events_.now() > end || events_.steps() > kStepsMax)
        throw LivenessFailure("a process does not get its ring, or cannot leave");
    }
    for (int i = 0; i < 1000; ++i) check_frame();
    for (Process& each : processes_) each.leaves = true;
  }
  while (!settled()) events_.step();
  if (kernel_.sockets() != 0) throw LivenessFailure("sockets are left after all have ended");
  RunReport report;
  report.description = description_;
  report.digest = events_.digest();
  report.messages = processes_.size();
  report.failures = deaths_;
  report.steps = events_.steps();
  report.network.frames = frames_;
  report.duration = events_.now().time_since_epoch();
  return report;
}

}  // namespace cluster::sim
