// Many endpoints of a host with a ring each, in one process and in several: each receives exactly its own
// frames, whoever joins, leaves or is killed. Needs root.
#include "os/ring_group.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "conformance/link_station.h"
#include "conformance/two_hosts.h"
#include "os/packet_link.h"

namespace cluster::os {
namespace {

using Family = SocketAddress::Family;
using test::Station;

constexpr int kMilliseconds = 20'000;  // the end of waiting on a busy machine

const PacketSettings kSmallRings{.ring_slots = 8, .ethertype = true};

/// Opens an endpoint in the namespace of the caller.
std::unique_ptr<Station> open_here(const Interface& interface, const SocketAddress& name,
                                   const PacketSettings& settings = kSmallRings) {
  auto station = std::make_unique<Station>();
  std::string refusal;
  int error = 0;
  station->port = UdpPort::open(name, error);
  if (station->port == nullptr) return station;
  station->link = open_packet_link(station->port, interface, settings, station->world.environment, refusal,
                                   &station->rings);
  EXPECT_TRUE(station->link) << refusal;
  return station;
}

std::unique_ptr<Station> open_station(const test::TwoHosts& hosts, int host, Family family = Family::v4,
                                      const PacketSettings& settings = kSmallRings) {
  const Interface interface = hosts.interface(host);
  std::unique_ptr<Station> station;
  hosts.on(host, [&] { station = open_here(interface, hosts.address(host, family), settings); });
  return station;
}

/// Makes the process one of this user, and leaves it its capabilities.
bool become(uid_t user) {
  prctl(PR_SET_KEEPCAPS, 1);
  __user_cap_header_struct head{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> sets{};
  if (setresuid(user, user, user) != 0 || syscall(SYS_capget, &head, sets.data()) != 0) return false;
  for (auto& set : sets) set.effective = set.permitted;
  return syscall(SYS_capset, &head, sets.data()) == 0;
}

/// An endpoint in a process of its own. It writes the number of each frame that it receives to a pipe.
class Rank {
 public:
  explicit Rank(const test::TwoHosts& hosts, uid_t user = geteuid()) : name_(hosts.address(0, Family::v4)) {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) return;
    const Interface interface = hosts.interface(0);
    hosts.on(0, [&] {
      child_ = fork();
      if (child_ != 0) return;
      if (user != geteuid() && !become(user)) _exit(1);
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      serve(interface, name_, ends[1]);
    });
    close(ends[1]);
    numbers_ = Descriptor(ends[0]);
  }
  ~Rank() {
    if (child_ <= 0) return;
    signal(SIGKILL);
    waitpid(child_, nullptr, 0);
  }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  /// Waits until it has its ring.
  const SocketAddress& name() {
    if (name_.port() != 0) return name_;
    name_ = name_.with_port(static_cast<std::uint16_t>(next().value_or(0)));
    EXPECT_NE(name_.port(), 0u) << "it has a ring";
    return name_;
  }
  void signal(int number) const { ::kill(child_, number); }
  /// The number of the next frame, as soon as it is there.
  std::optional<std::uint32_t> next(int milliseconds = kMilliseconds) const {
    pollfd watch{numbers_.number(), POLLIN, 0};
    std::uint32_t number = 0;
    if (poll(&watch, 1, milliseconds) != 1) return std::nullopt;
    return read(numbers_.number(), &number, sizeof number) == sizeof number ? std::optional(number)
                                                                            : std::nullopt;
  }

 private:
  [[noreturn]] static void serve(const Interface& interface, const SocketAddress& name, int out) {
    const std::unique_ptr<Station> station = open_here(interface, name);
    const std::uint32_t port = station->link ? station->name().port() : 0;
    if (write(out, &port, sizeof port) != sizeof port || port == 0) _exit(1);
    std::vector<pollfd> sources;
    for (const int descriptor : station->link->descriptors()) sources.push_back({descriptor, POLLIN, 0});
    for (;;) {
      const std::vector<test::Numbered> frames = station->poll();
      for (const test::Numbered& frame : frames) {
        const std::uint32_t number = frame.intact ? frame.number : ~0u;
        if (write(out, &number, sizeof number) != sizeof number) _exit(1);
      }
      if (!frames.empty()) continue;
      station->link->before_sleep();
      ::poll(sources.data(), sources.size(), 1000);
    }
  }

  pid_t child_ = 0;
  Descriptor numbers_;
  SocketAddress name_;
};

class RingGroups : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string reason;
    hosts_ = test::TwoHosts::make(reason);
    if (!hosts_) GTEST_SKIP() << reason;
  }
  link::Path path_to(const SocketAddress& name, bool ethertype) const {
    link::Path path{name, hosts_->interface(0).mac, true};
    path.ethertype = ethertype;
    return path;
  }
  /// Sends a frame on each of the two paths to each rank, and expects both to arrive there and nothing else.
  void reaches(const std::vector<std::unique_ptr<Rank>>& ranks) {
    for (const auto& rank : ranks) rank->name();
    for (const bool ethertype : {false, true}) {
      for (std::size_t i = 0; i < ranks.size(); ++i)
        sender_->send(path_to(ranks[i]->name(), ethertype), {test::numbered(++number_ * 1000 + i, 64)});
      for (std::size_t i = 0; i < ranks.size(); ++i)
        EXPECT_EQ(ranks[i]->next(), (number_ - ranks.size() + 1 + i) * 1000 + i) << i << ", " << ethertype;
    }
  }
  /// The lines of /proc/net/`table` that contain `word`.
  std::size_t sockets(const std::string& table, const std::string& word) const {
    std::size_t count = 0;
    hosts_->on(0, [&] {
      std::ifstream lines("/proc/thread-self/net/" + table);
      for (std::string line; std::getline(lines, line);) count += line.find(word) != std::string::npos;
    });
    return count;
  }
  std::size_t packet_sockets() const { return sockets("packet", "") - 1; }  // the first line is the head
  void open_sender() { sender_ = open_station(*hosts_, 1); }

  std::unique_ptr<test::TwoHosts> hosts_;
  std::unique_ptr<Station> sender_;
  std::size_t number_ = 0;
};

TEST_F(RingGroups, SixtyFourEndpointsOfAProcessReceiveTheirOwnFrames) {
  std::vector<std::unique_ptr<Station>> all;
  for (int i = 0; i < 64; ++i) all.push_back(open_station(*hosts_, 0, i % 4 == 3 ? Family::v6 : Family::v4));
  open_sender();
  const std::unique_ptr<Station> sender_v6 = open_station(*hosts_, 1, Family::v6);
  for (const bool ethertype : {false, true}) {
    for (std::uint32_t i = 0; i < all.size(); ++i) {
      Station& from = i % 4 == 3 ? *sender_v6 : *sender_;
      from.send(path_to(all[i]->name(), ethertype), {test::numbered(i, 64)});
    }
    for (std::uint32_t i = 0; i < all.size(); ++i) {
      const std::vector<test::Numbered> arrived = all[i]->receive(1);
      ASSERT_EQ(arrived.size(), 1u) << i;
      EXPECT_EQ(arrived[0].number, i);
      EXPECT_EQ(arrived[0].from.ethertype, ethertype);
    }
  }
  for (const auto& station : all) {
    EXPECT_EQ(station->world.counters.refused_malformed, 0u);
    EXPECT_EQ(station->world.counters.link_malformed, 0u);
  }
}

TEST_F(RingGroups, IfAGroupIsFullFurtherRingsAreInTheNextOne) {
  PacketSettings two = kSmallRings;
  two.rings = 2;
  two.ring_slots = 60;  // four blocks in the first group
  std::vector<std::unique_ptr<Station>> all;
  for (int i = 0; i < 5; ++i) all.push_back(open_station(*hosts_, 0, Family::v4, two));
  const std::vector<std::size_t> expected{2, 2, 1};
  for (std::size_t i = 0; i < all.size(); ++i) {
    const RingUsage usage = all[i]->rings->usage();
    EXPECT_EQ(usage.endpoints, expected[i / 2]);
    EXPECT_EQ(usage.bytes, (i < 2 ? 2 * 5 : 2 * expected[i / 2]) * kRingBlockBytes)
        << "small rings in further groups";
  }
  open_sender();
  for (const bool ethertype : {false, true}) {
    for (std::uint32_t i = 0; i < all.size(); ++i)
      sender_->send(path_to(all[i]->name(), ethertype), {test::numbered(i, 64)});
    for (std::uint32_t i = 0; i < all.size(); ++i) {
      const std::vector<test::Numbered> arrived = all[i]->receive(1);
      ASSERT_EQ(arrived.size(), 1u) << i;
      EXPECT_EQ(arrived[0].number, i);
      EXPECT_EQ(arrived[0].from.ethertype, ethertype);
    }
  }
  all.erase(all.begin());
  all.push_back(open_station(*hosts_, 0, Family::v4, two));
  EXPECT_EQ(all.back()->rings->usage().endpoints, 2u) << "a place in the first group is taken again";
}

TEST_F(RingGroups, SixtyFourProcessesThatJoinAtOnceReceiveTheirOwnFrames) {
  std::vector<std::unique_ptr<Rank>> ranks;
  SystemClock clock;
  const Time begin = clock.now();
  for (int i = 0; i < 64; ++i) ranks.push_back(std::make_unique<Rank>(*hosts_));
  for (const auto& rank : ranks) rank->name();
  std::printf("joined in %lld ms\n", static_cast<long long>((clock.now() - begin) / 1ms));
  open_sender();
  reaches(ranks);
}

TEST_F(RingGroups, TheDeathOfMembersCostsTheOthersNoFrame) {
  std::vector<std::unique_ptr<Rank>> ranks;
  for (int i = 0; i < 8; ++i) ranks.push_back(std::make_unique<Rank>(*hosts_));
  open_sender();
  reaches(ranks);
  for (const std::size_t two : {1u, 3u, 0u}) {
    ranks[two]->signal(SIGKILL);
    ranks[two + 1]->signal(SIGKILL);
    ranks.erase(ranks.begin() + static_cast<std::ptrdiff_t>(two),
                ranks.begin() + static_cast<std::ptrdiff_t>(two) + 2);
    reaches(ranks);
  }
}

TEST_F(RingGroups, AnotherUserHasAnotherGroup) {
  constexpr uid_t kNobody = 65534;
  std::vector<std::unique_ptr<Rank>> ranks;
  for (const uid_t user : {geteuid(), kNobody, kNobody, geteuid()})
    ranks.push_back(std::make_unique<Rank>(*hosts_, user));
  open_sender();
  reaches(ranks);
  const std::string name = "cluster-rings-1/" + std::to_string(hosts_->interface(0).index) + "/";
  for (const uid_t user : {geteuid(), kNobody})
    EXPECT_GE(sockets("unix", name + std::to_string(user)), 1u) << user;
  ranks.erase(ranks.begin() + 1, ranks.begin() + 3);
  reaches(ranks);
}

TEST_F(RingGroups, ThePlacesOfTheDeadAreTakenAgain) {
  std::vector<std::unique_ptr<Rank>> ranks;
  for (int i = 0; i < 4; ++i) ranks.push_back(std::make_unique<Rank>(*hosts_));
  open_sender();
  reaches(ranks);
  const std::size_t before = packet_sockets();
  for (int round = 0; round < 6; ++round) {
    // Its ring may hold a frame that nobody has read.
    const SocketAddress name = ranks[0]->name();
    ranks[0]->signal(SIGSTOP);
    sender_->send(path_to(name, round % 2 == 0), {test::numbered(7, 64)});
    ranks.erase(ranks.begin());
    ranks.push_back(std::make_unique<Rank>(*hosts_));
    reaches(ranks);
    reaches(ranks);
  }
  for (int i = 0; i < 2000 && packet_sockets() > before; ++i) usleep(1000);  // threads close the old ones
  EXPECT_LE(packet_sockets(), before);
}

TEST_F(RingGroups, NothingIsLeftAfterTheDeathOfAll) {
  const std::size_t before = packet_sockets();
  std::vector<std::unique_ptr<Rank>> ranks;
  for (int i = 0; i < 6; ++i) ranks.push_back(std::make_unique<Rank>(*hosts_));
  for (const auto& rank : ranks) rank->name();
  EXPECT_GT(packet_sockets(), before);
  for (const auto& rank : ranks) rank->signal(SIGKILL);
  ranks.clear();
  for (int i = 0; i < 2000 && packet_sockets() != before; ++i) usleep(1000);
  EXPECT_EQ(packet_sockets(), before);
  ranks.push_back(std::make_unique<Rank>(*hosts_));
  open_sender();
  reaches(ranks);
}

TEST_F(RingGroups, ALinkThatGoesDownAndUpChangesNoNumbers) {
  std::vector<std::unique_ptr<Rank>> ranks;
  for (int i = 0; i < 6; ++i) ranks.push_back(std::make_unique<Rank>(*hosts_));
  for (const auto& rank : ranks) rank->name();
  ranks.erase(ranks.begin() + 1);
  ranks.push_back(std::make_unique<Rank>(*hosts_));  // takes the place of another
  open_sender();
  reaches(ranks);
  ASSERT_TRUE(hosts_->set(0, "down"));
  ASSERT_TRUE(hosts_->set(0, "up"));
  usleep(100'000);
  reaches(ranks);
}

TEST_F(RingGroups, EndpointsWithOnePortAndTwoAddresses) {
  ASSERT_TRUE(hosts_->ip(0, "addr add 10.99.0.7/24 dev " + hosts_->interface(0).name));
  ASSERT_TRUE(hosts_->ip(1, "route add 10.99.0.0/24 dev " + hosts_->interface(1).name));
  open_sender();
  const std::unique_ptr<Station> one = open_station(*hosts_, 0);
  const Interface interface = hosts_->interface(0);
  std::unique_ptr<Station> other;
  hosts_->on(0, [&] {
    const std::byte ip[4] = {std::byte{10}, std::byte{99}, std::byte{0}, std::byte{7}};
    other = open_here(interface, SocketAddress::v4(ip, one->name().port()));
  });
  ASSERT_TRUE(other->link);
  for (const bool ethertype : {false, true}) {
    sender_->send(path_to(one->name(), ethertype), {test::numbered(1, 64)});
    sender_->send(path_to(other->name(), ethertype), {test::numbered(2, 64)});
    for (Station* const station : {one.get(), other.get()}) {
      const std::vector<test::Numbered> arrived = station->receive(1);
      ASSERT_EQ(arrived.size(), 1u);
      EXPECT_EQ(arrived[0].number, station == one.get() ? 1u : 2u);
    }
  }
}

TEST_F(RingGroups, AStoppedMemberDoesNotHoldUpOneThatJoins) {
  std::vector<std::unique_ptr<Rank>> ranks;
  for (int i = 0; i < 2; ++i) ranks.push_back(std::make_unique<Rank>(*hosts_));
  for (const auto& rank : ranks) rank->name();
  ranks[0]->signal(SIGSTOP);
  ranks.push_back(std::make_unique<Rank>(*hosts_));
  ranks.back()->name();
  ranks[0]->signal(SIGCONT);
  open_sender();
  reaches(ranks);
}

/// Every 20 ms two members are killed at once, wherever they are, and two join. The others receive each frame
/// at the first attempt. RING_GROUP_SECONDS: how long.
TEST_F(RingGroups, MembersComeAndGoUnderTraffic) {
  const char* const wanted = std::getenv("RING_GROUP_SECONDS");
  const Duration length = std::chrono::seconds(wanted != nullptr ? std::atoi(wanted) : 3);
  std::vector<std::unique_ptr<Rank>> steady;
  std::vector<std::unique_ptr<Rank>> others;
  for (int i = 0; i < 16; ++i) (i % 3 == 0 ? steady : others).push_back(std::make_unique<Rank>(*hosts_));
  open_sender();
  reaches(steady);
  SystemClock clock;
  const Time end = clock.now() + length;
  Time next_death{};
  std::size_t deaths = 0;
  std::vector<Duration> turns;
  while (clock.now() < end && !HasFailure()) {
    if (clock.now() >= next_death) {
      const std::size_t victim = deaths % (others.size() - 1);
      others[victim]->signal(SIGKILL);
      others[victim + 1]->signal(SIGKILL);
      others[victim] = std::make_unique<Rank>(*hosts_);
      others[victim + 1] = std::make_unique<Rank>(*hosts_);
      deaths += 2;
      next_death = clock.now() + 20ms;
    }
    const Time begin = clock.now();
    reaches(steady);
    turns.push_back(clock.now() - begin);
  }
  std::sort(turns.begin(), turns.end());
  std::printf("%zu deaths, %zu turns of %zu frames: median %lld us, worst %lld us\n", deaths, turns.size(),
              2 * steady.size(), static_cast<long long>(turns[turns.size() / 2].count() / 1000),
              static_cast<long long>(turns.back().count() / 1000));
  reaches(steady);
  for (const auto& rank : others) rank->name();
  reaches(others);
}

}  // namespace
}  // namespace cluster::os
