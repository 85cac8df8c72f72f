// How often an engine polls the socket of a team's group: at each turn while it expects frames, otherwise
// seldom.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "support/node.h"

namespace cluster::engine {
namespace {

using test::kA;
using test::kB;

/// A group that never delivers anything.
class SilentGroup final : public link::MulticastReceiver {
 public:
  explicit SilentGroup(std::size_t& looks) : looks_(looks) {}
  std::size_t receive_burst(std::span<link::InFrame>) override { return ++looks_, 0; }
  int descriptor() const override { return -1; }

 private:
  std::size_t& looks_;
};

class SilentGroups final : public link::MulticastJoiner {
 public:
  explicit SilentGroups(std::size_t& looks) : looks_(looks) {}
  std::unique_ptr<link::MulticastReceiver> join(const SocketAddress&, std::span<const SocketAddress>,
                                                std::string&) override {
    return std::make_unique<SilentGroup>(looks_);
  }

 private:
  std::size_t& looks_;
};

class GroupWaitTest : public test::EngineTest {
 protected:
  static constexpr std::size_t kLooks = 1000;  ///< of which each comes 5 us after the one before

  GroupWaitTest() {
    for (const SocketAddress& name : {kA, kB, test::node_name(3)})
      members_.push_back({book_.insert(name), name});
    engine_.attach(book_, {.tx_queue = &sent_, .rx_queue = &received_, .joins_teams = true});
    engine_.with_collectives([&](collective::Collectives& all) { team_ = &all.create(members_, 0); });
  }
  /// In which member 1 is the root.
  void start_broadcast() {
    const collective::Arguments arguments{.kind = collective::Kind::broadcast, .target = buffer_, .root = 1};
    engine_.with_collectives([&](collective::Collectives& all) {
      EXPECT_EQ(all.start(*team_, arguments, nullptr, true), Status::ok);
    });
  }
  std::size_t asked() {
    looks_ = 0;
    for (std::size_t i = 0; i < kLooks; ++i) {
      clock.advance(5us);
      engine_.poll();
    }
    return looks_;
  }

  std::size_t looks_ = 0;
  test::Node::World world_{clock, 1};
  AddressTable book_;
  protocol::CompletionQueue sent_, received_;
  std::vector<std::byte> buffer_ = std::vector<std::byte>(collective::kMulticastMin);
  std::vector<collective::MemberAddress> members_;
  Engine engine_{EngineParts{.environment = world_.environment(),
                             .settings = test::node_settings(),
                             .name = kA,
                             .epoch = 1000,
                             .link = std::make_unique<test::FakeLink>(network, kA),
                             .local_listener = nullptr,
                             .resources = nullptr,
                             .multicast = std::make_unique<SilentGroups>(looks_)}};
  collective::Team* team_ = nullptr;
};

TEST_F(GroupWaitTest, ItIsAskedAtEachLookAsLongAsABroadcastIsToCome) {
  start_broadcast();
  start_broadcast();
  EXPECT_GT(asked(), kLooks * 9 / 10);
  engine_.with_collectives([&](collective::Collectives& all) { all.member_lost(kB, Status::ended); });
  asked();
  EXPECT_LT(asked(), kLooks / 20) << "neither is to come now";
}

}  // namespace
}  // namespace cluster::engine
