// Tagged messages: tags and ignore masks, every call of the family, peek, claim, discard, cancel.
// fi_tagged(3)
#include "fabric.h"

namespace conformance {
namespace {

PAIR_TEST(Tagged, EverySizeArrivesIntactWithTagAndData) {
  Team team(side);
  Endpoint& e = team.endpoint;
  int context = 0;
  for (const std::size_t size :
       {0u, 1u, 8u, 192u, 1024u, 4000u, 16384u, 50000u, 65536u, 65537u, 1u << 20, 3000001u}) {
    SCOPED_TRACE(size);
    const std::uint64_t tag = 0xFEDCBA9800000000 + size;
    std::vector<unsigned char> buffer = side.first() ? pattern(size, size) : std::vector<unsigned char>(size);
    if (side.first()) {
      e.must([&] {
        return fi_tsenddata(e.ep(), buffer.data(), size, nullptr, ~std::uint64_t{0}, team.peer(), tag,
                            &context);
      });
      EXPECT_EQ(e.finish(&context).entry.flags, std::uint64_t{FI_TAGGED | FI_SEND});
    } else {
      e.must([&] { return fi_trecv(e.ep(), buffer.data(), size, nullptr, team.peer(), tag, 0, &context); });
      const Outcome outcome = e.finish(&context);
      EXPECT_EQ(outcome.entry.flags, std::uint64_t{FI_TAGGED | FI_RECV | FI_REMOTE_CQ_DATA});
      EXPECT_EQ(outcome.entry.len, size);
      EXPECT_EQ(outcome.entry.tag, tag);
      EXPECT_EQ(outcome.entry.data, ~std::uint64_t{0});
      EXPECT_TRUE(has_pattern(buffer, size));
    }
  }
}

PAIR_TEST(Tagged, EachCallOfTheFamily) {
  Team team(side);
  Endpoint& e = team.endpoint;
  int context = 0;
  auto buffer = side.first() ? pattern(48, 1) : std::vector<unsigned char>(48);
  iovec pieces[2] = {{buffer.data(), 20}, {buffer.data() + 20, 28}};
  const fi_msg_tagged message{pieces, nullptr, 2, team.peer(), 6, 0, &context, 0xDA7A};
  if (side.first()) {
    e.must([&] { return fi_tsend(e.ep(), buffer.data(), 48, nullptr, team.peer(), 1, &context); });
    e.finish(&context);
    e.must([&] { return fi_tsendv(e.ep(), pieces, nullptr, 2, team.peer(), 2, &context); });
    e.finish(&context);
    e.must([&] { return fi_tinject(e.ep(), buffer.data(), 48, team.peer(), 3); });
    e.must([&] { return fi_tinjectdata(e.ep(), buffer.data(), 48, 0xDA7A, team.peer(), 4); });
    e.must(
        [&] { return fi_tsenddata(e.ep(), buffer.data(), 48, nullptr, 0xDA7A, team.peer(), 5, &context); });
    e.finish(&context);
    e.must([&] { return fi_tsendmsg(e.ep(), &message, FI_COMPLETION | FI_REMOTE_CQ_DATA); });
    e.finish(&context);
    return;
  }
  for (std::uint64_t tag = 6; tag >= 1; --tag) {  // last first: they must have been kept apart
    std::fill(buffer.begin(), buffer.end(), 0);
    const fi_msg_tagged wanted{pieces, nullptr, 2, team.peer(), tag, 0, &context, 0};
    e.must([&] {
      if (tag % 3 == 0) return fi_trecvmsg(e.ep(), &wanted, FI_COMPLETION);
      if (tag % 3 == 1) return fi_trecvv(e.ep(), pieces, nullptr, 2, team.peer(), tag, 0, &context);
      return fi_trecv(e.ep(), buffer.data(), 48, nullptr, FI_ADDR_UNSPEC, tag, 0, &context);
    });
    const Outcome outcome = e.finish(&context);
    EXPECT_EQ(outcome.entry.tag, tag);
    EXPECT_EQ((outcome.entry.flags & FI_REMOTE_CQ_DATA) != 0, tag >= 4);
    if (tag >= 4) {
      EXPECT_EQ(outcome.entry.data, 0xDA7Au);
    }
    EXPECT_TRUE(has_pattern(buffer, 1)) << "tag " << tag;
  }
}

PAIR_TEST(Tagged, IgnoreMaskDecidesBitByBit) {
  Team team(side);
  Endpoint& e = team.endpoint;
  int contexts[64];
  unsigned char buffers[64] = {};
  if (!side.first()) {
    // Receive i wants bit i of the tag and does not care for any other bit above it.
    for (unsigned i = 0; i < 64; ++i) {
      const std::uint64_t bit = std::uint64_t{1} << i;
      const std::uint64_t ignore = i == 63 ? 0 : ~(bit | (bit - 1));
      e.must([&] {
        return fi_trecv(e.ep(), &buffers[i], 1, nullptr, FI_ADDR_UNSPEC, bit, ignore, &contexts[i]);
      });
    }
  }
  team.meet();
  if (side.first()) {
    for (unsigned i = 64; i-- > 0;) {
      const unsigned char value = static_cast<unsigned char>(i);
      const std::uint64_t tag = (std::uint64_t{0xA5A5A5A5A5A5A5A5} << i) | (std::uint64_t{1} << i);
      e.must(
          [&] { return fi_tinject(e.ep(), &value, 1, team.peer(), tag & ~((std::uint64_t{1} << i) - 1)); });
    }
  } else {
    for (unsigned i = 0; i < 64; ++i) {
      e.finish(&contexts[i]);
      EXPECT_EQ(buffers[i], i);
    }
  }
}

PAIR_TEST(Tagged, TaggedAndUntaggedNeverMeet) {
  Team team(side);
  Endpoint& e = team.endpoint;
  int tagged = 0;
  int untagged = 0;
  unsigned char a = 0;
  unsigned char b = 0;
  if (side.first()) {
    const unsigned char one = 1;
    const unsigned char two = 2;
    e.must([&] { return fi_inject(e.ep(), &one, 1, team.peer()); });
    e.must([&] { return fi_tinject(e.ep(), &two, 1, team.peer(), 0); });
  } else {
    e.must([&] { return fi_trecv(e.ep(), &a, 1, nullptr, FI_ADDR_UNSPEC, 0, ~std::uint64_t{0}, &tagged); });
    e.must([&] { return fi_recv(e.ep(), &b, 1, nullptr, FI_ADDR_UNSPEC, &untagged); });
    e.finish(&tagged);
    e.finish(&untagged);
    EXPECT_EQ(a, 2);
    EXPECT_EQ(b, 1);
  }
}

PAIR_TEST(Tagged, TruncationKeepsTagDataAndLength) {
  Team team(side);
  Endpoint& e = team.endpoint;
  int context = 0;
  for (const std::size_t size : {100u, 200000u}) {
    std::vector<unsigned char> buffer = side.first() ? pattern(size, 4) : std::vector<unsigned char>(60);
    if (side.first()) {
      e.must(
          [&] { return fi_tsenddata(e.ep(), buffer.data(), size, nullptr, 77, team.peer(), 5, &context); });
      e.finish(&context);
    } else {
      e.must([&] { return fi_trecv(e.ep(), buffer.data(), 60, nullptr, team.peer(), 5, 0, &context); });
      const Outcome outcome = e.fail(&context, FI_ETRUNC);
      EXPECT_EQ(outcome.failure.tag, 5u);
      EXPECT_EQ(outcome.failure.len, 60u);
      EXPECT_EQ(outcome.failure.olen, size - 60);
      EXPECT_EQ(outcome.failure.data, 77u);
      EXPECT_TRUE(has_pattern(buffer, 4));
    }
  }
}

// --- cancel ---

SINGLE_TEST(Cancel, OneErrorEntryThenNothing) {
  Endpoint e;
  unsigned char buffer = 0;
  int contexts[3];
  for (int& context : contexts) {
    e.must([&] { return fi_trecv(e.ep(), &buffer, 1, nullptr, FI_ADDR_UNSPEC, 1, 0, &context); });
  }
  EXPECT_EQ(fi_cancel(&e.ep()->fid, &contexts[1]), 0);
  const Outcome outcome = e.fail(&contexts[1], FI_ECANCELED);
  EXPECT_NE(outcome.failure.flags & FI_RECV, 0u);
  EXPECT_TRUE(e.silent(std::chrono::milliseconds(10)));
  EXPECT_EQ(fi_cancel(&e.ep()->fid, &contexts[2]), 0);
  e.fail(&contexts[2], FI_ECANCELED);
}

SINGLE_TEST(Cancel, OfTheUnknownLeavesNoEntry) {
  Endpoint e;
  int context = 0;
  const auto result = fi_cancel(&e.ep()->fid, &context);
  EXPECT_TRUE(result == 0 || result == -FI_ENOENT) << result;
  EXPECT_TRUE(e.silent(std::chrono::milliseconds(10)));
}

SINGLE_TEST(Cancel, UntaggedReceivesToo) {
  Endpoint e;
  unsigned char buffer = 0;
  int context = 0;
  e.must([&] { return fi_recv(e.ep(), &buffer, 1, nullptr, FI_ADDR_UNSPEC, &context); });
  EXPECT_EQ(fi_cancel(&e.ep()->fid, &context), 0);
  e.fail(&context, FI_ECANCELED);
}

PAIR_TEST(Cancel, TheNextReceiveInLineGetsTheMessage) {
  Team team(side);
  Endpoint& e = team.endpoint;
  int first = 0;
  int second = 0;
  unsigned char buffers[2] = {};
  if (!side.first()) {
    e.must([&] { return fi_trecv(e.ep(), &buffers[0], 1, nullptr, FI_ADDR_UNSPEC, 1, 0, &first); });
    e.must([&] { return fi_trecv(e.ep(), &buffers[1], 1, nullptr, FI_ADDR_UNSPEC, 1, 0, &second); });
    EXPECT_EQ(fi_cancel(&e.ep()->fid, &first), 0);
    e.fail(&first, FI_ECANCELED);
  }
  team.meet();
  if (side.first()) {
    const unsigned char value = 9;
    e.must([&] { return fi_tinject(e.ep(), &value, 1, team.peer(), 1); });
  } else {
    e.finish(&second);
    EXPECT_EQ(buffers[0], 0);
    EXPECT_EQ(buffers[1], 9);
  }
}

}  // namespace
}  // namespace conformance
