// A thread that waits for a long message from a group sleeps while its frames gather.
#include <algorithm>
#include <vector>

#include "link/multicast.h"
#include "unit/api/api_world.h"

namespace cluster::api::test {
namespace {

/// The group's address as one member hears it.
class MailGroup final : public link::MulticastReceiver {
 public:
  MailGroup(Network& network, const SocketAddress& address) : link_(network, address) {}
  std::size_t receive_burst(std::span<link::InFrame> frames) override { return link_.receive_burst(frames); }
  int descriptor() const override { return -1; }

 private:
  MailLink link_;
};

/// Only one member hears the group; the others have an address of their own.
class MailGroups final : public link::MulticastJoiner {
 public:
  MailGroups(Network& network, bool hears) : network_(network), hears_(hears) {}
  std::unique_ptr<link::MulticastReceiver> join(const SocketAddress& group, std::span<const SocketAddress>, std::string&) override {
    return std::make_unique<MailGroup>(network_, hears_ ? group : host(99, 1));
  }

 private:
  Network& network_;
  bool hears_;
};

class GatherTest : public PairTest {
 protected:
  static constexpr std::size_t kLength = 300'000;

  GatherTest() {
    platform.clock().step = 5us;
    platform.sleepers = true;
    wait = FI_WAIT_UNSPEC;
    platform.multicast = [this](const SocketAddress&) {
      return std::make_unique<MailGroups>(platform.network, platform.built == 2);
    };
    start();
    const std::byte ip[] = {std::byte{239}, std::byte{192}, std::byte{1}, std::byte{1}};
    engine::JoinOp op{.address = SocketAddress::v4(ip, 7000), .key = 77, .role = {}};
    op.roster = {host(1, 9000), host(2, 9000)};
    for (engine::Engine* const engine : platform.engines) EXPECT_EQ(engine->change_membership(&op, group_), Status::ok);
    for (int turn = 0; turn < 1000; ++turn) turn_both();
  }
  /// As a process beside the one that waits.
  void run_sender(int turns) {
    for (int turn = 0; turn < turns; ++turn) fi_cq_read(left.sends, nullptr, 0);
  }

  std::uint64_t group_ = 0;  ///< the first of each engine has one handle
  std::vector<std::byte> message_ = std::vector<std::byte>(kLength);
  std::vector<std::byte> buffer_ = std::vector<std::byte>(kLength);
};

TEST_F(GatherTest, AThreadThatWaitsSleepsWhileFramesCome) {
  platform.while_asleep = [this] { run_sender(20); };
  ASSERT_EQ(fi_recv(right.endpoint, buffer_.data(), kLength, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  const ConstBytes slice(message_);
  ASSERT_EQ(platform.engines[0]->send({.slices = {&slice, 1}, .length = kLength, .to = group_}), Status::ok);
  fi_cq_tagged_entry entry{};
  ssize_t got = -FI_EAGAIN;
  for (int call = 0; call < 1000 && got == -FI_EAGAIN; ++call) {
    run_sender(20);
    got = fi_cq_sread(right.receives, &entry, 1, nullptr, 2);
  }
  ASSERT_EQ(got, 1);
  EXPECT_GT(platform.slept.size(), 2u);
  EXPECT_LE(*std::max_element(platform.slept.begin(), platform.slept.end()), 250us);
}

}  // namespace
}  // namespace cluster::api::test
