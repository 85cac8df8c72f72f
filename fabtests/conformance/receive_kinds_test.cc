// The capabilities of receives that libfabric added in 2.0: FI_TAGGED_DIRECTED_RECV, FI_EXACT_DIRECTED_RECV
// and FI_TAGGED_MULTI_RECV. fi_getinfo(3), fi_tagged(3)
#include <map>

#include "fabric.h"

namespace conformance {
namespace {

constexpr std::uint64_t kTaggedDirectedRecv = 1ull << 45;
constexpr std::uint64_t kTaggedMultiRecv = 1ull << 46;
constexpr std::uint64_t kExactDirectedRecv = 1ull << 48;

Options options_with(std::uint64_t newer_caps, std::uint64_t caps = FI_MSG | FI_TAGGED | FI_SOURCE) {
  Options options;
  options.caps = caps;
  options.newer_caps = newer_caps;
  return options;
}

PAIR_TEST(ReceiveKinds, OnlyTaggedReceivesAreDirected) {
  Team team(side, options_with(kTaggedDirectedRecv));
  Endpoint& e = team.endpoint;
  const fi_addr_t self = team.peers[static_cast<std::size_t>(side.index())];
  unsigned char byte = 0;
  int tagged = 0;
  int untagged = 0;
  int own = 0;
  e.must([&] { return fi_recv(e.ep(), &byte, 1, nullptr, self, &untagged); });
  e.must([&] { return fi_trecv(e.ep(), &byte, 1, nullptr, self, 1, 0, &own); });
  e.must([&] { return fi_trecv(e.ep(), &byte, 1, nullptr, team.peer(), 1, 0, &tagged); });
  team.meet();
  e.must([&] { return fi_inject(e.ep(), "x", 1, team.peer()); });
  e.must([&] { return fi_tinject(e.ep(), "x", 1, team.peer(), 1); });
  EXPECT_EQ(e.finish(&untagged).source, team.peer());
  EXPECT_EQ(e.finish(&tagged).source, team.peer());
  e.must([&] { return fi_tinject(e.ep(), "x", 1, self, 1); });
  EXPECT_EQ(e.finish(&own).source, self);
}

PAIR_TEST(ReceiveKinds, ExactReceivesMustNameTheirSource) {
  Team team(side, options_with(kExactDirectedRecv));
  Endpoint& e = team.endpoint;
  unsigned char byte = 0;
  int context = 0;
  EXPECT_EQ(fi_recv(e.ep(), &byte, 1, nullptr, FI_ADDR_UNSPEC, &context), -FI_EINVAL);
  EXPECT_EQ(fi_trecv(e.ep(), &byte, 1, nullptr, FI_ADDR_UNSPEC, 1, 0, &context), -FI_EINVAL);
  for (const bool posted_first : {true, false}) {
    const auto post = [&] {
      e.must([&] { return fi_trecv(e.ep(), &byte, 1, nullptr, team.peer(), 1, 0, &context); });
    };
    if (posted_first) post();
    team.meet();
    e.must([&] { return fi_tinject(e.ep(), "y", 1, team.peer(), 1); });
    team.meet();
    if (!posted_first) post();
    EXPECT_EQ(e.finish(&context).source, team.peer());
    EXPECT_EQ(byte, 'y');
    byte = 0;
  }
}

void post_buffer(Endpoint& e, std::vector<unsigned char>& buffer, std::uint64_t tag, std::uint64_t ignore) {
  const iovec vector{buffer.data(), buffer.size()};
  const fi_msg_tagged message{&vector, nullptr, 1, FI_ADDR_UNSPEC, tag, ignore, &buffer, 0};
  e.must([&] { return fi_trecvmsg(e.ep(), &message, FI_MULTI_RECV | FI_COMPLETION); });
}

PAIR_TEST(ReceiveKinds, OneBufferTakesManyTaggedMessages) {
  constexpr std::size_t kPerBuffer = 5;
  constexpr std::uint64_t kMask = 0xff;
  Team team(side, options_with(kTaggedMultiRecv));
  Endpoint& e = team.endpoint;
  for (const std::size_t size : {8u, 1000u, 20000u, 300000u}) {
    SCOPED_TRACE(size);
    if (side.first()) {
      team.meet();
      int context = 0;
      for (std::uint64_t i = 0; i < 2 * kPerBuffer; ++i) {
        const auto data = pattern(size, i);
        const std::uint64_t tag = (i % 2 + 1) << 8 | i;
        e.must([&] { return fi_tsend(e.ep(), data.data(), size, nullptr, team.peer(), tag, &context); });
        e.finish(&context);
      }
    } else {
      ASSERT_EQ(fi_setopt(&e.ep()->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &size, sizeof size), 0);
      std::vector<std::vector<unsigned char>> buffers(2);
      std::map<void*, std::size_t> count;
      std::map<void*, bool> released;
      for (std::size_t i = 0; i < buffers.size(); ++i) {
        buffers[i].assign(size * kPerBuffer, 0);
        post_buffer(e, buffers[i], (i + 1) << 8, kMask);
      }
      team.meet();
      while (released.size() < buffers.size()) {
        const auto outcome = e.next();
        ASSERT_TRUE(outcome && !outcome->error);
        const fi_cq_tagged_entry& entry = outcome->entry;
        ASSERT_FALSE(released.contains(entry.op_context)) << "an entry behind the release";
        if (entry.flags & FI_MULTI_RECV) released[entry.op_context] = true;
        if (!(entry.flags & FI_RECV)) continue;
        EXPECT_EQ(entry.flags & ~FI_MULTI_RECV, FI_RECV | FI_TAGGED);
        EXPECT_EQ(outcome->source, team.peer());
        EXPECT_EQ(entry.len, size);
        const std::uint64_t number = entry.tag & kMask;
        EXPECT_EQ(entry.op_context, &buffers[number % 2]);
        EXPECT_EQ(entry.buf, buffers[number % 2].data() + size * count[entry.op_context]++);
        EXPECT_TRUE(has_pattern({static_cast<unsigned char*>(entry.buf), size}, number));
      }
      for (auto& buffer : buffers) EXPECT_EQ(count[&buffer], kPerBuffer);
    }
    team.meet();
  }
}

PAIR_TEST(ReceiveKinds, ATaggedBufferTakesMessagesThatHaveArrivedAndCanBeCancelled) {
  Team team(side, options_with(kTaggedMultiRecv));
  Endpoint& e = team.endpoint;
  if (side.first()) {
    for (const std::uint64_t tag : {1u, 2u, 1u})
      e.must([&] { return fi_tinject(e.ep(), "z", 1, team.peer(), tag); });
    team.meet();
    team.meet();
  } else {
    team.meet();
    EXPECT_TRUE(e.silent(std::chrono::milliseconds(20)));
    std::vector<unsigned char> buffer(1000);
    post_buffer(e, buffer, 1, 0);
    for (std::size_t i = 0; i < 2; ++i) {
      const auto outcome = e.next();
      ASSERT_TRUE(outcome && !outcome->error);
      EXPECT_EQ(outcome->entry.tag, 1u);
      EXPECT_EQ(outcome->entry.buf, buffer.data() + i);
    }
    ASSERT_EQ(fi_cancel(&e.ep()->fid, &buffer), 0);
    e.fail(&buffer, FI_ECANCELED);
    unsigned char byte = 0;
    int context = 0;
    e.must([&] { return fi_trecv(e.ep(), &byte, 1, nullptr, FI_ADDR_UNSPEC, 2, 0, &context); });
    e.finish(&context);
    team.meet();
  }
}

SINGLE_TEST(ReceiveKinds, WithoutTheCapabilityATaggedBufferIsRefused) {
  Endpoint e(options_with(0, FI_MSG | FI_TAGGED | FI_MULTI_RECV));
  unsigned char byte = 0;
  const iovec vector{&byte, 1};
  const fi_msg_tagged message{&vector, nullptr, 1, FI_ADDR_UNSPEC, 0, 0, nullptr, 0};
  EXPECT_NE(fi_trecvmsg(e.ep(), &message, FI_MULTI_RECV), 0);
}

}  // namespace
}  // namespace conformance
