// One matching order per endpoint: posted receives are tried in the order they were posted, directed
// and wildcard ones in one queue; messages of one sender are matched in the order they were sent;
// unexpected ones of all sizes wait, whether or not their sender is in the address vector.
#include "fabric.h"

namespace conformance {
namespace {

std::optional<unsigned> value_of(const std::vector<unsigned char>& buffer) {
  if (buffer.size() < sizeof(unsigned)) return std::nullopt;
  unsigned value = 0;
  std::memcpy(&value, buffer.data(), sizeof value);
  return value;
}

std::vector<unsigned char> numbered(unsigned value, std::size_t size) {
  std::vector<unsigned char> data(std::max(size, sizeof value));
  std::memcpy(data.data(), &value, sizeof value);
  return data;
}

/// Sizes that travel by different protocols, so that a small one could overtake a large one.
std::size_t mixed_size(unsigned i) {
  constexpr std::size_t kSizes[] = {8, 300000, 100, 20000, 4, 1000000, 3000, 33000};
  return kSizes[i % 8];
}

void send_numbered(Team& team, unsigned count) {
  Endpoint& e = team.endpoint;
  std::vector<std::vector<unsigned char>> data;
  std::vector<int> contexts(count);
  for (unsigned i = 0; i < count; ++i) data.push_back(numbered(i, mixed_size(i)));
  for (unsigned i = 0; i < count; ++i) {
    e.must([&] {
      return fi_tsend(e.ep(), data[i].data(), data[i].size(), nullptr, team.peer(), 5, &contexts[i]);
    });
  }
  for (int& context : contexts) e.finish(&context);
}

void receive_numbered(Team& team, unsigned count, bool posted_first) {
  Endpoint& e = team.endpoint;
  std::vector<std::vector<unsigned char>> buffers(count, std::vector<unsigned char>(1 << 20));
  std::vector<int> contexts(count);
  if (!posted_first) {
    const Deadline pause(std::chrono::milliseconds(50));
    while (!pause.passed()) e.progress();
  }
  for (unsigned i = 0; i < count; ++i) {
    const fi_addr_t from = i % 3 == 0 ? FI_ADDR_UNSPEC : team.peer();
    const std::uint64_t ignore = i % 2 == 0 ? 0 : ~std::uint64_t{0};
    e.must(
        [&] { return fi_trecv(e.ep(), buffers[i].data(), 1 << 20, nullptr, from, 5, ignore, &contexts[i]); });
  }
  if (posted_first) team.meet();
  for (unsigned i = 0; i < count; ++i) {
    const Outcome outcome = e.finish(&contexts[i]);
    EXPECT_EQ(outcome.entry.len, mixed_size(i)) << "message " << i;
    EXPECT_EQ(value_of(buffers[i]), i);
  }
}

PAIR_TEST(Matching, PostedReceivesAreServedInOrder) {
  Team team(side);
  if (side.first()) {
    team.meet();
    send_numbered(team, 64);
  } else {
    receive_numbered(team, 64, true);
  }
}

PAIR_TEST(Matching, UnexpectedMessagesAreServedInOrder) {
  Team team(side);
  side.first() ? send_numbered(team, 64) : receive_numbered(team, 64, false);
}

SIDES_TEST(Matching, DirectedAndWildcardReceivesStandInOneQueue, 3) {
  Team team(side);
  Endpoint& e = team.endpoint;
  int contexts[4];
  unsigned char buffers[4] = {};
  if (side.first()) {
    const fi_addr_t from[4] = {team.peers[1], FI_ADDR_UNSPEC, team.peers[2], FI_ADDR_UNSPEC};
    for (int i = 0; i < 4; ++i) {
      e.must([&] { return fi_trecv(e.ep(), &buffers[i], 1, nullptr, from[i], 1, 0, &contexts[i]); });
    }
  }
  team.meet();
  const auto say = [&](unsigned char value) {
    e.must([&] { return fi_tinject(e.ep(), &value, 1, team.peers[0], 1); });
  };
  // Side 2 speaks first: the directed receive for side 1 is passed over, the wildcard is next.
  if (side.index() == 2) say(20);
  if (side.first()) e.finish(&contexts[1]);
  team.meet();
  if (side.index() == 1) say(10);
  if (side.first()) e.finish(&contexts[0]);
  team.meet();
  if (side.index() == 1) say(11);
  if (side.first()) e.finish(&contexts[3]);
  team.meet();
  if (side.index() == 2) say(21);
  if (side.first()) {
    e.finish(&contexts[2]);
    EXPECT_EQ(buffers[0], 10);
    EXPECT_EQ(buffers[1], 20);
    EXPECT_EQ(buffers[2], 21);
    EXPECT_EQ(buffers[3], 11);
  }
}

SIDES_TEST(Matching, ADirectedReceiveTakesOnlyItsSendersUnexpectedMessage, 3) {
  Team team(side);
  Endpoint& e = team.endpoint;
  if (!side.first()) {
    const auto value = static_cast<unsigned char>(side.index());
    e.must([&] { return fi_tinject(e.ep(), &value, 1, team.peers[0], 1); });
  }
  team.meet();
  if (side.first()) {
    for (const int from : {2, 1}) {
      int context = 0;
      unsigned char value = 0;
      const fi_addr_t peer = team.peers[static_cast<std::size_t>(from)];
      e.must([&] { return fi_trecv(e.ep(), &value, 1, nullptr, peer, 1, 0, &context); });
      EXPECT_EQ(e.finish(&context).source, peer);
      EXPECT_EQ(value, from);
    }
  }
}

PAIR_TEST(Matching, UnexpectedMessagesOfAllSizesWait) {
  Team team(side);
  Endpoint& e = team.endpoint;
  const std::vector<std::size_t> sizes = {0, 1, 1024, 16384, 65536, 65537, 70000, 1 << 20, 9 << 20};
  std::vector<std::vector<unsigned char>> buffers;
  std::vector<int> contexts(sizes.size());
  if (side.first()) {
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      buffers.push_back(pattern(sizes[i], i));
      e.must(
          [&] { return fi_send(e.ep(), buffers[i].data(), sizes[i], nullptr, team.peer(), &contexts[i]); });
    }
    team.meet();
    for (int& context : contexts) e.finish(&context);
  } else {
    team.meet();
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      buffers.emplace_back(sizes[i]);
      e.must([&] {
        return fi_recv(e.ep(), buffers[i].data(), sizes[i], nullptr, FI_ADDR_UNSPEC, &contexts[i]);
      });
    }
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      EXPECT_EQ(e.finish(&contexts[i]).entry.len, sizes[i]);
      EXPECT_TRUE(has_pattern(buffers[i], i));
    }
  }
}

PAIR_TEST(Matching, ManyUnexpectedMessagesAreKeptWhileTheReceiverSleeps) {
  Team team(side);
  Endpoint& e = team.endpoint;
  constexpr unsigned kCount = 3000;
  if (side.first()) {
    for (unsigned i = 0; i < kCount; ++i) {
      const auto data = numbered(i, 4 + i % 200);
      e.must([&] { return fi_tinject(e.ep(), data.data(), data.size(), team.peer(), i); });
    }
  } else {
    // No progress at all for a while: nothing may be declared dead, nothing may be lost.
    std::this_thread::sleep_for(std::chrono::seconds(1));
    int context = 0;
    for (unsigned i = 0; i < kCount; ++i) {
      std::vector<unsigned char> buffer(256);
      e.must([&] { return fi_trecv(e.ep(), buffer.data(), 256, nullptr, FI_ADDR_UNSPEC, i, 0, &context); });
      ASSERT_EQ(e.finish(&context).entry.len, 4 + i % 200);
      ASSERT_EQ(value_of(buffer), i);
    }
  }
}

PAIR_TEST(UnknownSource, IsReceivedBeforeItIsInTheAddressVector) {
  // Only side 1 knows side 0 at first.
  Endpoint e;
  const auto names = side.exchange(e.name());
  const auto progress = [&] { e.progress(); };
  int contexts[3];
  unsigned char buffer = 0;
  if (!side.first()) {
    const fi_addr_t peer = e.insert(names[0]);
    for (unsigned char value = 1; value <= 3; ++value) {
      e.must([&] { return fi_tinject(e.ep(), &value, 1, peer, value); });
    }
    side.meet(progress);
    side.meet(progress);
    return;
  }
  e.must([&] { return fi_trecv(e.ep(), &buffer, 1, nullptr, FI_ADDR_UNSPEC, 1, 0, &contexts[0]); });
  EXPECT_EQ(e.finish(&contexts[0]).source, FI_ADDR_NOTAVAIL);
  EXPECT_EQ(buffer, 1);
  side.meet(progress);
  // Messages 2 and 3 came unexpected from an unknown source. Now it is inserted.
  const fi_addr_t peer = e.insert(names[1]);
  e.must([&] { return fi_trecv(e.ep(), &buffer, 1, nullptr, peer, 2, 0, &contexts[1]); });
  EXPECT_EQ(e.finish(&contexts[1]).source, peer);
  e.must([&] { return fi_trecv(e.ep(), &buffer, 1, nullptr, FI_ADDR_UNSPEC, 3, 0, &contexts[2]); });
  EXPECT_EQ(e.finish(&contexts[2]).source, peer);
  side.meet(progress);
}

PAIR_TEST(UnknownSource, ARemovedPeerIsStillReceivedAndMayBeInsertedAgain) {
  Team team(side);
  Endpoint& e = team.endpoint;
  int context = 0;
  unsigned char value = 0;
  const auto pass = [&](fi_addr_t expected) {
    team.meet();
    if (side.first()) {
      e.must([&] { return fi_recv(e.ep(), &value, 1, nullptr, FI_ADDR_UNSPEC, &context); });
      EXPECT_EQ(e.finish(&context).source, expected);
    } else {
      e.must([&] { return fi_send(e.ep(), &value, 1, nullptr, team.peer(), &context); });
      e.finish(&context);
    }
  };
  pass(team.peer());
  fi_addr_t peer = team.peer();
  if (side.first()) {
    EXPECT_EQ(fi_av_remove(e.domain().av(), &peer, 1, 0), 0);
  }
  pass(FI_ADDR_NOTAVAIL);
  if (side.first()) peer = e.insert(team.names[1]);
  pass(peer);
  if (side.first()) {
    e.must([&] { return fi_send(e.ep(), &value, 1, nullptr, peer, &context); });
    e.finish(&context);
  } else {
    e.must([&] { return fi_recv(e.ep(), &value, 1, nullptr, team.peer(), &context); });
    e.finish(&context);
  }
}

}  // namespace
}  // namespace conformance
