// Two engines on real links, each driven only by a thread that sleeps whenever there is nothing to do: no
// progress thread runs them. A wake that is missed is a test that never ends, which
// the watch at the end turns into a failure.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <thread>

#include "engine/engine.h"
#include "engine/sleeper.h"
#include "os/system_clock.h"
#include "os/system_random.h"
#include "os/udp_link.h"
#include "shm/local_listener.h"

namespace cluster::engine {
namespace {

class QuietLog final : public Log {
 public:
  bool enabled(LogLevel) const override { return false; }
  void write(LogLevel, const char*) override {}
};

constexpr int kRounds = 20000;
constexpr auto kPatience = 10s;  ///< for one message

class Player {
 public:
  explicit Player(bool shm) {
    int error = 0;
    const std::array ip{std::byte{127}, std::byte{0}, std::byte{0}, std::byte{1}};
    const std::shared_ptr<os::UdpPort> port = os::UdpPort::open(SocketAddress::v4(ip.data(), 0), error);
    const Environment environment{clock_, random_, log_, counters_};
    std::string reason;
    EngineParts parts{
        environment, EngineSettings{}, port->name(), 1, os::open_udp_link(port, 1500, environment), {}, {}};
    if (shm)
      parts.local_listener = shm::open_listener(port->name(), 1, shm::ShmSettings{}, environment, reason);
    engine_ = std::make_unique<Engine>(std::move(parts));
    protocol::EndpointBindings bindings;
    bindings.tx_queue = &sent_;
    bindings.rx_queue = &received_;
    engine_->attach(book_, bindings);
    sleeper_ = Sleeper::open();
    sleeper_->add(*engine_);
  }
  ~Player() {
    sleeper_->remove(*engine_);
    engine_.reset();
  }
  const SocketAddress& name() const { return engine_->name(); }
  void meet(const Player& other) { peer_ = book_.insert(other.name()); }

  bool send() {
    protocol::SendOp order;
    order.to = peer_;
    order.inject = true;
    order.report = false;
    Status fault = Status::again;
    while (fault == Status::again) {
      fault = engine_->send(order);
      if (fault == Status::again) engine_->poll();
    }
    return fault == Status::ok;
  }
  /// Takes one message, asleep until it is there.
  bool receive() {
    EXPECT_EQ(engine_->receive({}), Status::ok);
    const Time end = clock_.now() + kPatience;
    while (clock_.now() < end) {
      const auto all = [](const protocol::Completion&) { return true; };
      if (received_.drain(1, all, [](const protocol::Completion&) {}) == 1) return true;
      if (!received_.wake_at_next(*sleeper_) || !engine_->arm() || !received_.empty()) continue;
      if (sleeper_->wait(kPatience) == os::WaitSet::Wake::event) engine_->poll();
    }
    return false;
  }

 private:
  os::SystemClock clock_;
  os::SystemRandom random_;
  QuietLog log_;
  Counters counters_;
  AddressTable book_;
  protocol::CompletionQueue sent_;
  protocol::CompletionQueue received_;
  std::uint64_t peer_ = 0;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Sleeper> sleeper_;
};

void play(bool shm) {
  Player left(shm);
  Player right(shm);
  left.meet(right);
  right.meet(left);
  std::atomic<bool> lost{false};
  std::thread other([&] {
    for (int i = 0; i < kRounds && !lost.load(); ++i) {
      if (!right.receive() || !right.send()) lost = true;
    }
  });
  int round = 0;
  for (; round < kRounds && !lost.load(); ++round) {
    if (!left.send() || !left.receive()) lost = true;
  }
  other.join();
  EXPECT_FALSE(lost.load()) << "a wake was missed in round " << round;
}

TEST(Sleep, MissesNothingInSharedMemory) { play(true); }

TEST(Sleep, MissesNothingOnTheNetwork) { play(false); }

}  // namespace
}  // namespace cluster::engine
