// First contact of a peer while another host calls in its name, at a rate just below a flood (protocol.md
// 2.2). The bound is that of fi_cluster_security(7).
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "support/forged_frame.h"
#include "support/node.h"

namespace cluster::engine {
namespace {

using test::ForgedFrame;
using test::kA;
using test::kB;
using test::kLate;
using test::Node;

constexpr Duration kStep = 10us;
/// The engine drops some of the calls beyond these, whatever name they carry.
constexpr int kCallsASecond = 6000;

/// How the other host paces its calls: so many at once, at a certain interval or a random one.
struct Pace {
  const char* name;
  int at_once;
  bool random;
};

class ContestedNameTest : public test::EngineTest, public testing::WithParamInterface<Pace> {
 protected:
  /// One step of time, in which the other host may call. Each call is another one.
  void step(Node& a, Node& b) {
    const Pace& pace = GetParam();
    const Duration interval = Duration(1s) * pace.at_once / kCallsASecond;
    if (clock.now() >= next_call_) {
      for (int i = 0; i < pace.at_once; ++i, ++session_)
        inject(kB, kA, ForgedFrame::call(kB, session_, kLate + session_).bytes());
      const Duration drawn(dice_.below(static_cast<std::uint64_t>(2 * interval.count())));
      next_call_ = clock.now() + (pace.random ? drawn : interval);
    }
    clock.advance(kStep);
    a.engine.poll();
    b.engine.poll();
  }
  /// From the first call to the first message.
  Duration first_contact(std::uint64_t epoch) {
    Node a(network, kA, kB, epoch);
    Node b(network, kB, kA, epoch);
    const Time ready = clock.now() + 20ms + Duration(dice_.below(5'000'000));
    while (clock.now() < ready) step(a, b);
    b.send();
    while (a.counters().unexpected == 0 && clock.now() < ready + 10s) step(a, b);
    return clock.now() - ready;
  }

 private:
  test::FakeRandom dice_{7};
  Time next_call_{};
  std::uint32_t session_ = 0xF0000000;
};

constexpr Pace kPaces[] = {{"AtRandom", 1, true},
                           {"Regularly", 1, false},
                           {"SixAtOnce", 6, false},
                           {"ThirtyAtOnce", 30, false},
                           {"ManyAtRandom", 60, true}};
INSTANTIATE_TEST_SUITE_P(Called, ContestedNameTest, testing::ValuesIn(kPaces),
                         [](const auto& pace) { return std::string(pace.param.name); });

TEST_P(ContestedNameTest, ThePeerComesThroughWithinMilliseconds) {
  constexpr std::size_t kContacts = 60;
  std::vector<Duration> took;
  for (std::size_t i = 0; i < kContacts; ++i) took.push_back(first_contact(1000 + 1000 * i));
  std::ranges::sort(took);
  EXPECT_LT(took[kContacts * 9 / 10], 5ms);
  EXPECT_LT(took.back(), 300ms) << "eight calls";
}

}  // namespace
}  // namespace cluster::engine
