// Multicast groups: joining and leaving, messages of every size from every member, their order, roles, late members, and what
// is refused. fi_cm(3), fi_join
#include <arpa/inet.h>
#include <netinet/in.h>
#include <unistd.h>

#include "fabric.h"

namespace conformance {
namespace {

constexpr std::size_t kGroupSizes[] = {0, 1, 64, 1024, 1400, 1500, 4096, 65536, 100000, (1 << 20) + 3};

/// Without a key of its own if it is empty.
Options with_groups(const std::string& key) {
  Options options;
  options.domain_key = key;
  options.caps = FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_SOURCE | FI_MULTICAST;
  options.events = true;
  return options;
}

/// An address that no other test uses at the moment.
sockaddr_in group_address(Side& side) {
  const auto unique = static_cast<std::uint32_t>(getpid()) * 2654435761u;
  Blob mine(sizeof unique);
  std::memcpy(mine.data(), &unique, sizeof unique);
  const Blob chosen = side.exchange(mine)[0];
  std::uint32_t seed = 0;
  std::memcpy(&seed, chosen.data(), sizeof seed);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(0xEFC00000 | (seed & 0x3FFFF));  // 239.192.0.0/14
  address.sin_port = htons(static_cast<std::uint16_t>(20000 + (seed >> 20)));
  return address;
}

/// All sides, which know each other, and a group.
struct GroupTeam : Team {
  explicit GroupTeam(Side& one, const std::string& key = "")
      : Team(one, with_groups(key)), address(group_address(one)) {}
  ~GroupTeam() {
    if (group != nullptr) meet();
  }

  Owned<fid_mc> begin_join(std::uint64_t flags = 0) {
    fid_mc* opened = nullptr;
    EXPECT_EQ(fi_join(endpoint.ep(), &address, flags, &opened, this), 0);
    return Owned<fid_mc>(opened);
  }
  void await_join(fid_mc& joined) {
    const Deadline deadline(std::chrono::seconds(20));
    std::uint32_t event = 0;
    fi_eq_entry entry{};
    while (fi_eq_read(endpoint.eq(), &event, &entry, sizeof entry, 0) == -FI_EAGAIN && !deadline.passed())
      endpoint.progress();
    EXPECT_EQ(event, static_cast<std::uint32_t>(FI_JOIN_COMPLETE));
    EXPECT_EQ(entry.fid, &joined.fid);
    EXPECT_EQ(entry.context, this);
  }
  /// On all sides at once: then each has met all others.
  void join(std::uint64_t flags = 0) {
    group = begin_join(flags);
    await_join(*group);
    meet();
  }
  fi_addr_t to() const { return fi_mc_addr(group.get()); }

  void expect_message(std::size_t from, std::uint64_t tag, std::size_t size) {
    std::vector<unsigned char> buffer(size + 1, 0xEE);
    int context = 0;
    endpoint.must([&] {
      return fi_trecv(endpoint.ep(), buffer.data(), buffer.size(), nullptr, peers[from], tag, 0, &context);
    });
    const Outcome outcome = endpoint.finish(&context);
    EXPECT_EQ(outcome.entry.len, size);
    EXPECT_EQ(outcome.source, peers[from]);
    buffer.resize(size);
    EXPECT_TRUE(has_pattern(buffer, tag));
  }
  void send(std::uint64_t tag, std::size_t size) {
    const auto data = pattern(size, tag);
    int context = 0;
    endpoint.must([&] { return fi_tsend(endpoint.ep(), data.data(), size, nullptr, to(), tag, &context); });
    endpoint.finish(&context);
  }

  sockaddr_in address;
  Owned<fid_mc> group;
};

void send_every_size(Side& side, GroupTeam& team) {
  team.join();
  for (int sender = 0; sender < side.count(); ++sender) {
    for (const std::size_t size : kGroupSizes) {
      SCOPED_TRACE(size);
      const auto tag = static_cast<std::uint64_t>(sender) << 32 | size;
      if (sender == side.index()) {
        team.send(tag, size);
      } else {
        team.expect_message(static_cast<std::size_t>(sender), tag, size);
      }
    }
  }
}

SIDES_TEST(Group, EverySizeReachesEveryMember, 4) {
  GroupTeam team(side);
  send_every_size(side, team);
}

SIDES_TEST(Group, EverySizeReachesEveryMemberThatHasTheKey, 4) {
  GroupTeam team(side, "the key of the group");
  send_every_size(side, team);
}

SIDES_TEST(Group, AMemberWithAnotherKeyHearsAndSaysNothing, 3) {
  GroupTeam team(side, side.index() == 2 ? "the key of another group" : "the key of the group");
  team.join();
  team.send(static_cast<std::uint64_t>(side.index()), 64);  // with another key it has no receiver
  if (side.index() < 2)
    team.expect_message(static_cast<std::size_t>(1 - side.index()),
                        static_cast<std::uint64_t>(1 - side.index()), 64);
  std::uint64_t word = 0;
  team.endpoint.must([&] {
    return fi_trecv(team.endpoint.ep(), &word, sizeof word, nullptr, FI_ADDR_UNSPEC, 0, ~std::uint64_t{0},
                    &word);
  });
  EXPECT_TRUE(team.endpoint.silent(std::chrono::milliseconds(300)));
}

SIDES_TEST(Group, AllMembersSendAtOnceInOrder, 3) {
  GroupTeam team(side);
  Endpoint& e = team.endpoint;
  team.join();
  constexpr std::uint64_t kCount = 2000;
  for (std::uint64_t i = 0; i < kCount; ++i) {
    e.must([&] { return fi_inject(e.ep(), &i, sizeof i, team.to()); });
  }
  for (int sender = 0; sender < side.count(); ++sender) {
    if (sender == side.index()) continue;
    for (std::uint64_t i = 0; i < kCount; ++i) {
      std::uint64_t value = 0;
      int context = 0;
      e.must([&] {
        return fi_recv(e.ep(), &value, sizeof value, nullptr, team.peers[static_cast<std::size_t>(sender)],
                       &context);
      });
      e.finish(&context);
      ASSERT_EQ(value, i);
    }
  }
}

SIDES_TEST(Group, MessagesBeyondTheWindowWaitForTheirReceive, 3) {
  GroupTeam team(side);
  team.join();
  constexpr std::size_t kSize = 17 << 20;  // more than is kept without a receive
  if (side.first()) {
    team.send(1, kSize);
  } else {
    if (side.index() == 2) {
      EXPECT_TRUE(team.endpoint.silent(std::chrono::milliseconds(200)));
    }
    team.expect_message(0, 1, kSize);
  }
}

SIDES_TEST(Group, CompletesAtEveryLevel, 3) {
  GroupTeam team(side);
  Endpoint& e = team.endpoint;
  team.join();
  const std::uint64_t levels[] = {FI_INJECT_COMPLETE, FI_TRANSMIT_COMPLETE, FI_DELIVERY_COMPLETE};
  for (std::uint64_t i = 0; i < std::size(levels); ++i) {
    if (!side.first()) {
      team.expect_message(0, i, 3000);
      continue;
    }
    const auto data = pattern(3000, i);
    int context = 0;
    const iovec piece{const_cast<unsigned char*>(data.data()), data.size()};
    fi_msg_tagged message{};
    message.msg_iov = &piece;
    message.iov_count = 1;
    message.addr = team.to();
    message.tag = i;
    message.context = &context;
    e.must([&] { return fi_tsendmsg(e.ep(), &message, levels[i] | FI_COMPLETION | FI_MULTICAST); });
    e.finish(&context);
  }
}

SIDES_TEST(Group, RolesLimitWhatAMemberDoes, 3) {
  GroupTeam team(side);
  team.join(side.first() ? FI_SEND : side.index() == 1 ? FI_RECV : FI_SEND | FI_RECV);
  if (side.index() == 1) {
    int context = 0;
    char byte = 0;
    EXPECT_LT(fi_send(team.endpoint.ep(), &byte, 1, nullptr, team.to(), &context), 0);
  }
  if (side.first()) {
    team.send(1, 100);
    EXPECT_TRUE(team.endpoint.silent(std::chrono::milliseconds(100)));  // hears nothing of side 2
  } else {
    team.expect_message(0, 1, 100);
  }
  if (side.index() == 2) team.send(2, 200);
  if (side.index() == 1) team.expect_message(2, 2, 200);
}

SIDES_TEST(Group, LateMembersBeginWithTheNextMessage, 3) {
  GroupTeam team(side);
  if (side.index() != 2) {
    team.group = team.begin_join();
    team.await_join(*team.group);
  }
  team.meet();
  if (side.first()) team.send(1, 5000);
  if (side.index() == 1) team.expect_message(0, 1, 5000);
  team.meet();
  if (side.index() == 2) {
    team.group = team.begin_join();
    team.await_join(*team.group);
  }
  team.meet();
  if (side.first()) team.send(2, 6000);
  if (!side.first()) team.expect_message(0, 2, 6000);
  team.meet();
  // One that leaves hears nothing more, and may come back.
  if (side.index() == 1) team.group.reset();
  team.meet();
  if (side.first()) team.send(3, 700);
  if (side.index() == 2) team.expect_message(0, 3, 700);
  team.meet();
  if (side.index() == 1) {
    team.group = team.begin_join();
    team.await_join(*team.group);
  }
  team.meet();
  if (side.first()) team.send(4, 800);
  if (!side.first()) team.expect_message(0, 4, 800);
}

SINGLE_TEST(Group, RefusesWhatCannotBe) {
  GroupTeam team(side);
  fid_mc* group = nullptr;
  sockaddr_in unicast = team.address;
  unicast.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(fi_join(team.endpoint.ep(), &unicast, 0, &group, nullptr), -FI_EINVAL);
  sockaddr_in portless = team.address;
  portless.sin_port = 0;
  EXPECT_EQ(fi_join(team.endpoint.ep(), &portless, 0, &group, nullptr), -FI_EINVAL);
  EXPECT_EQ(fi_join(team.endpoint.ep(), &team.address, FI_PEEK, &group, nullptr), -FI_EBADFLAGS);
  Endpoint without_events;
  EXPECT_EQ(fi_join(without_events.ep(), &team.address, 0, &group, nullptr), -FI_EOPNOTSUPP);
  Options deaf = with_groups("");
  deaf.events = false;
  Endpoint without_queue(deaf);
  EXPECT_EQ(fi_join(without_queue.ep(), &team.address, 0, &group, nullptr), -FI_ENOEQ);
  // Alone in its group an endpoint is heard by all of the others.
  team.group = team.begin_join();
  team.await_join(*team.group);
  EXPECT_EQ(fi_close(&team.endpoint.ep()->fid), -FI_EBUSY);
  team.send(1, 10);
  EXPECT_TRUE(team.endpoint.silent(std::chrono::milliseconds(20)));
}

}  // namespace
}  // namespace conformance
