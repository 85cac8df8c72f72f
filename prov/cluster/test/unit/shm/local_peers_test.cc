// What an engine looks at, and how often, when peers live on its node.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "seal/local_proof.h"
#include "shm/ring_listener.h"
#include "support/node.h"
#include "support/quiet_local.h"

namespace cluster::engine {
namespace {

using test::FakeLink;
using test::FakeNetwork;
using test::kA;
using test::kB;
using test::Node;

/// A peer of this node that writes on and on, alive or reported dead.
class EndlessInbox final : public test::QuietInbox {
 public:
  EndlessInbox(std::size_t& looks, bool dead, bool sends)
      : QuietInbox(kB), looks_(looks), dead_(dead), sends_(sends) {}
  bool peek(shm::PeekedSegment& arrival) override {
    arrival = {};
    arrival.segment.kind = wire::SegmentKind::done;
    return ++looks_ < 10'000'000 && sends_;
  }
  bool peer_gone() override { return dead_; }

 private:
  std::size_t& looks_;
  bool dead_, sends_;
};

class ListenerOfOne final : public test::QuietListener {
 public:
  explicit ListenerOfOne(std::size_t& looks, bool dead = true, bool sends = true)
      : looks_(looks), dead_(dead), sends_(sends) {}
  void accept(std::vector<std::unique_ptr<shm::Inbox>>& arrivals) override {
    if (!std::exchange(came_, true))
      arrivals.push_back(std::make_unique<EndlessInbox>(looks_, dead_, sends_));
  }

 private:
  std::size_t& looks_;
  bool dead_, sends_;
  bool came_ = false;
};

/// Peers that send something when the test says so, and count how often they are read.
class CountedInbox final : public test::QuietInbox {
 public:
  struct Account {
    std::size_t looks = 0;
    bool sends = false;
    bool dead = false;
    std::size_t checks = 0;  ///< whether it is
  };
  CountedInbox(const SocketAddress& peer, Account& account) : QuietInbox(peer), account_(account) {}
  bool peek(shm::PeekedSegment& arrival) override {
    arrival = {};
    arrival.segment.kind = wire::SegmentKind::padding;
    shown_ = account_.sends && !shown_;
    account_.looks += !shown_;
    return shown_;
  }
  bool peer_gone() override {
    ++account_.checks;
    return account_.dead;
  }

 private:
  Account& account_;
  bool shown_ = false;
};

class HostOfMany final : public test::QuietListener {
 public:
  explicit HostOfMany(std::vector<CountedInbox::Account>& accounts) : accounts_(accounts) {}
  void accept(std::vector<std::unique_ptr<shm::Inbox>>& arrivals) override {
    for (std::uint16_t port = 1; !came_ && port <= accounts_.size(); ++port) {
      arrivals.push_back(std::make_unique<CountedInbox>(kB.with_port(port), accounts_[port - 1u]));
    }
    came_ = true;
  }

 private:
  std::vector<CountedInbox::Account>& accounts_;
  bool came_ = false;
};

/// A peer that goes away, with a close notice or without.
class LeavingInbox final : public test::QuietInbox {
 public:
  explicit LeavingInbox(bool in_peace) : QuietInbox(kB), notices_(in_peace ? 1 : 0) {}
  bool peek(shm::PeekedSegment& arrival) override {
    arrival = {};
    arrival.segment.kind = wire::SegmentKind::close;
    return notices_ > 0;
  }
  void pop() override { --notices_; }
  bool peer_gone() override { return true; }

 private:
  int notices_;
};

class HostOfALeaver final : public test::QuietListener {
 public:
  explicit HostOfALeaver(bool in_peace) : inbox_(std::make_unique<LeavingInbox>(in_peace)) {}
  void accept(std::vector<std::unique_ptr<shm::Inbox>>& arrivals) override {
    if (inbox_ != nullptr) arrivals.push_back(std::move(inbox_));
  }

 private:
  std::unique_ptr<LeavingInbox> inbox_;
};

/// A peer of this node that begins to use its address when the test says so.
class HostOfALatecomer final : public test::QuietListener {
 public:
  struct Account {
    bool comes = false;
    bool gone = false;
  };
  class Watched final : public test::QuietInbox {
   public:
    explicit Watched(Account& account) : QuietInbox(kB, 5000), account_(account) {}
    ~Watched() override { account_.gone = true; }

   private:
    Account& account_;
  };
  explicit HostOfALatecomer(Account& account) : account_(account) {}
  void accept(std::vector<std::unique_ptr<shm::Inbox>>& arrivals) override {
    if (std::exchange(account_.comes, false)) arrivals.push_back(std::make_unique<Watched>(account_));
  }

 private:
  Account& account_;
};

class LocalPeersTest : public ::testing::Test {
 protected:
  test::FakeClock clock;
  FakeNetwork network{clock, 1};
};

TEST_F(LocalPeersTest, APeerThatWritesOnAfterItsDeathDoesNotHoldTheEngine) {
  std::size_t looks = 0;
  Node a(network, kA, kB, 1000, std::make_unique<ListenerOfOne>(looks));
  for (int turn = 0; turn < 20'000; ++turn) a.engine.poll();
  EXPECT_LT(looks, 9'000'000u);
  EXPECT_GT(looks, 0u);
}

/// One turn of an endpoint in a crowd does not ask the kernel about two hundred processes.
TEST_F(LocalPeersTest, OfManyPeersATurnChecksSomeAndEachIsSoonChecked) {
  std::vector<CountedInbox::Account> accounts(200);
  Node a(network, kA, kB, 1000, std::make_unique<HostOfMany>(accounts));
  for (std::uint16_t port = 1; port <= accounts.size(); ++port) a.book.insert(kB.with_port(port));
  const auto checks = [&] {
    return std::accumulate(accounts.begin(), accounts.end(), std::size_t{0},
                           [](std::size_t sum, const auto& account) { return sum + account.checks; });
  };
  const auto turn = [&] {
    network.clock().advance(20ms);
    a.engine.try_poll();
  };
  turn();
  for (const std::size_t victim : {1u, 60u, 199u}) {
    accounts[victim].dead = true;
    const std::string loss = kB.with_port(static_cast<std::uint16_t>(victim + 1)).text() + " is lost";
    for (int i = 0; i < 30; ++i) {
      const std::size_t before = checks();
      turn();
      EXPECT_LE(checks() - before, 55u);
      if (i == 20) {
        EXPECT_EQ(a.logged(loss), 0u) << "its launcher may be ending this process, too";
      }
    }
    EXPECT_EQ(a.logged(loss), 1u);
  }
}

/// After a close notice, receives wait for the next incarnation of that name: they do not fail.
TEST_F(LocalPeersTest, APeerThatAnnouncedItsCloseIsNotReportedAsLost) {
  for (const bool in_peace : {false, true}) {
    Node a(network, kA, kB, 1000, std::make_unique<HostOfALeaver>(in_peace));
    const Bytes slice = as_bytes(&a.got, sizeof a.got);
    ASSERT_EQ(a.engine.receive({.slices = {&slice, 1}, .from = 0}), Status::ok);
    for (int turn = 0; turn < 2'000; ++turn) {
      network.clock().advance(1ms);
      a.engine.poll();
    }
    EXPECT_EQ(a.logged("has closed"), in_peace ? 1u : 0u);
    EXPECT_EQ(a.logged("is lost"), in_peace ? 0u : 1u);
    EXPECT_EQ(test::take_outcomes(a.received),
              in_peace ? std::vector<Status>{} : std::vector<Status>{Status::ended});
  }
}

/// The network has only reported that its predecessor's port was closed. That verdict must not hit the
/// process that has just started.
TEST_F(LocalPeersTest, APeerThatComesIsNotTakenForThePredecessorWhosePortWasClosed) {
  HostOfALatecomer::Account account;
  Node a(network, kA, kB, 1000, std::make_unique<HostOfALatecomer>(account));
  const auto turns = [&](Duration time) {
    for (const Time end = clock.now() + time; clock.now() < end; clock.advance(1ms)) a.engine.poll();
  };
  network.absent = kB;
  a.send();
  turns(900ms);
  network.absent.reset();
  account.comes = true;
  turns(200ms);
  EXPECT_FALSE(account.comes) << "it has been met";
  turns(2s);
  EXPECT_FALSE(account.gone);
  EXPECT_EQ(a.logged("is lost"), 0u);
}

TEST_F(LocalPeersTest, ASilentNetworkIsPolledSeldomBesideLocalPeers) {
  constexpr std::size_t kTurns = 20'000, kFew = kTurns / 10;
  const auto looks_at_network = [&](bool sends, Duration between_turns, PollScope scope) {
    std::size_t looks = 0;
    Node a(network, kA, kB, 1000, std::make_unique<ListenerOfOne>(looks, false, sends));
    network.looks = 0;
    for (std::size_t turn = 0; turn < kTurns; ++turn) {
      scope == PollScope::all ? a.engine.poll() : a.engine.try_poll();
      network.clock().advance(between_turns);
    }
    return network.looks;
  };
  EXPECT_LT(looks_at_network(true, 20ns, PollScope::due), kFew);
  EXPECT_LT(looks_at_network(false, 20ns, PollScope::due), kFew);
  EXPECT_EQ(looks_at_network(false, 20us, PollScope::due), kTurns)
      << "the peer is also reached over the network: time decides";
  EXPECT_EQ(looks_at_network(false, 4ms, PollScope::due), kTurns) << "a turn now and then misses nothing";
  EXPECT_EQ(looks_at_network(true, 20ns, PollScope::all), kTurns) << "a turn of scope all reads everything";
  Node alone(network, kA, kB, 1000);
  network.looks = 0;
  for (std::size_t turn = 0; turn < kTurns; ++turn) alone.engine.try_poll();
  EXPECT_EQ(network.looks, kTurns) << "there is nothing else to look at";
}

TEST_F(LocalPeersTest, AFrameFromTheNetworkRestoresItsPolling) {
  std::size_t looks = 0;
  Node a(network, kA, kB, 1000, std::make_unique<ListenerOfOne>(looks, false, true));
  Node b(network, kB, kA, 2000);
  for (int turn = 0; turn < 5'000; ++turn) a.engine.try_poll();
  b.send();
  network.clock().advance(1ms);
  network.looks = 0;
  for (int turn = 0; turn < 500; ++turn) a.engine.try_poll();
  EXPECT_GT(network.looks, 240U);
}

/// The turns of a rank in a crowd are few and far apart: a look at the network in each would cost as much as the rest.
TEST_F(LocalPeersTest, ANetworkWithoutPeersIsPolledSeldomAlsoByThoseThatTakeFewTurns) {
  const seal::JobKeys keys = test::credentials({"key of process " + std::to_string(::getpid())}).keys;
  Node::World a_world{network.clock(), 1};
  Node::World b_world{network.clock(), 2};
  const auto listener = [&](const SocketAddress& name, Node::World& world) {
    std::string reason;
    return shm::open_listener(name, 1, {.keys = keys}, world.environment(), reason);
  };
  Node a(network, kA, kB, 1, listener(kA, a_world));
  Node b(network, kB, kA, 2, listener(kB, b_world));
  for (Node* node : {&a, &b}) {
    node->receive();
    node->send();
  }
  for (int turn = 0; turn < 2'000; ++turn) {
    a.engine.poll();
    b.engine.poll();
    network.clock().advance(10us);
  }
  ASSERT_EQ(a.got, 1u);
  ASSERT_EQ(a.peer().carrier, std::string("shm"));
  const auto looks = [&](Duration between_turns) {
    network.looks = 0;
    for (int turn = 0; turn < 1'000; ++turn) {
      a.engine.try_poll();
      network.clock().advance(between_turns);
    }
    return network.looks;
  };
  EXPECT_LT(looks(20us), 20u);
  EXPECT_GE(looks(4ms), 999u);
}

TEST_F(LocalPeersTest, QuietRingsTakeTurns) {
  constexpr std::size_t kPeers = 200, kTurns = 10'000;
  std::vector<CountedInbox::Account> accounts(kPeers);
  EngineSettings settings = test::node_settings();
  settings.flows_max = kPeers;
  Node a(network, kA, kB, 1000, std::make_unique<HostOfMany>(accounts), settings);
  a.engine.poll();
  accounts[3].sends = true;
  for (std::size_t turn = 0; turn < kTurns; ++turn) a.engine.try_poll();
  const auto looks_at = [&](std::size_t peer, std::size_t turns, PollScope scope = PollScope::due) {
    const std::size_t before = accounts[peer].looks;
    for (std::size_t turn = 0; turn < turns; ++turn)
      scope == PollScope::all ? a.engine.poll() : a.engine.try_poll();
    return accounts[peer].looks - before;
  };
  EXPECT_GE(looks_at(3, 100), 100u) << "it talks";
  EXPECT_LT(looks_at(4, 1000), 100u) << "it does not";
  EXPECT_GT(looks_at(4, 1000), 10u) << "but may begin to";
  accounts[4].sends = true;
  EXPECT_GT(looks_at(4, 200), 100u) << "and is heard soon, and often from then on";
  EXPECT_EQ(looks_at(5, 10, PollScope::all), 10u) << "a turn of scope all reads everything";
}

}  // namespace
}  // namespace cluster::engine
