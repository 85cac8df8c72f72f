// FI_MULTI_RECV: messages packed into one buffer, the buffer given back once and last; FI_SOURCE_ERR.
// fi_msg(3)
#include <map>

#include "fabric.h"

namespace conformance {
namespace {

Options multi_options() {
  Options options;
  options.caps = FI_MSG | FI_MULTI_RECV | FI_SOURCE;
  return options;
}

void set_min_multi_recv(Endpoint& e, std::size_t least) {
  ASSERT_EQ(fi_setopt(&e.ep()->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, sizeof least), 0);
  std::size_t value = 0;
  std::size_t size = sizeof value;
  ASSERT_EQ(fi_getopt(&e.ep()->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value, &size), 0);
  EXPECT_EQ(value, least);
}

void post(Endpoint& e, std::vector<unsigned char>& buffer, void* context) {
  const iovec vector{buffer.data(), buffer.size()};
  const fi_msg message{&vector, nullptr, 1, FI_ADDR_UNSPEC, context, 0};
  e.must([&] { return fi_recvmsg(e.ep(), &message, FI_MULTI_RECV | FI_COMPLETION); });
}

PAIR_TEST(MultiReceive, EveryBufferTakesAsManyAsFitAndIsGivenBackOnce) {
  Team team(side, multi_options());
  Endpoint& e = team.endpoint;
  for (const std::size_t size : {8u, 1000u, 20000u, 100000u}) {
    SCOPED_TRACE(size);
    constexpr std::size_t kPerBuffer = 5;
    constexpr std::size_t kMessages = 4 * kPerBuffer;
    if (side.first()) {
      team.meet();
      int context = 0;
      for (std::size_t i = 0; i < kMessages; ++i) {
        const auto data = pattern(size, i);
        e.must([&] { return fi_send(e.ep(), data.data(), size, nullptr, team.peer(), &context); });
        e.finish(&context);
      }
    } else {
      set_min_multi_recv(e, size);
      std::vector<std::vector<unsigned char>> buffers(4);
      for (auto& buffer : buffers) {
        buffer.assign(size * kPerBuffer + size / 2, 0);
        post(e, buffer, &buffer);
      }
      team.meet();
      std::map<void*, std::size_t> counts;
      std::map<void*, bool> over;
      for (std::size_t i = 0; i < kMessages;) {
        const auto outcome = e.next();
        ASSERT_TRUE(outcome && !outcome->error);
        const fi_cq_tagged_entry& entry = outcome->entry;
        ASSERT_FALSE(over[entry.op_context]) << "completion after the buffer was released";
        over[entry.op_context] = entry.flags & FI_MULTI_RECV;
        if (!(entry.flags & FI_RECV)) continue;
        EXPECT_EQ(entry.flags & ~FI_MULTI_RECV, FI_RECV | FI_MSG);
        auto& buffer = *static_cast<std::vector<unsigned char>*>(entry.op_context);
        EXPECT_EQ(entry.buf, buffer.data() + size * counts[entry.op_context]++);
        EXPECT_EQ(entry.len, size);
        EXPECT_TRUE(has_pattern({static_cast<unsigned char*>(entry.buf), size}, i++));
      }
      for (auto& buffer : buffers) {
        EXPECT_EQ(counts[&buffer], kPerBuffer);
        if (!over[&buffer]) {
          const auto outcome = e.next();
          ASSERT_TRUE(outcome && !outcome->error);
          EXPECT_EQ(outcome->entry.flags, FI_MULTI_RECV);
        }
      }
      EXPECT_TRUE(e.silent(std::chrono::milliseconds(20)));
    }
    team.meet();
  }
}

PAIR_TEST(MultiReceive, EarlyMessagesFillItAndCancelGivesItBack) {
  Team team(side, multi_options());
  Endpoint& e = team.endpoint;
  int context = 0;
  if (side.first()) {
    for (std::size_t i = 0; i < 3; ++i) {
      const auto data = pattern(100, i);
      e.must([&] { return fi_send(e.ep(), data.data(), data.size(), nullptr, team.peer(), &context); });
      e.finish(&context);
    }
    team.meet();
  } else {
    team.meet();
    set_min_multi_recv(e, 64);
    std::vector<unsigned char> buffer(1000);
    post(e, buffer, &buffer);
    for (std::size_t i = 0; i < 3; ++i) {
      const Outcome outcome = e.finish(&buffer);
      EXPECT_EQ(outcome.entry.flags, FI_RECV | FI_MSG);
      EXPECT_EQ(outcome.entry.buf, buffer.data() + 100 * i);
      EXPECT_TRUE(has_pattern(std::span(buffer).subspan(100 * i, 100), i));
    }
    EXPECT_EQ(fi_cancel(&e.ep()->fid, &buffer), 0);
    const Outcome outcome = e.fail(&buffer, FI_ECANCELED);
    EXPECT_TRUE(outcome.failure.flags & FI_MULTI_RECV);
    EXPECT_TRUE(e.silent(std::chrono::milliseconds(20)));
  }
  team.meet();
}

PAIR_TEST(MultiReceive, WhatIsLongerThanWhatIsLeftIsTruncated) {
  Team team(side, multi_options());
  Endpoint& e = team.endpoint;
  int context = 0;
  std::vector<unsigned char> buffer(1000);
  if (!side.first()) {
    set_min_multi_recv(e, 100);
    post(e, buffer, &buffer);
  }
  team.meet();
  if (side.first()) {
    for (const std::size_t size : {800u, 900u}) {
      const auto data = pattern(size, size);
      e.must([&] { return fi_send(e.ep(), data.data(), size, nullptr, team.peer(), &context); });
      e.finish(&context);
    }
  } else {
    EXPECT_EQ(e.finish(&buffer).entry.len, 800u);
    const Outcome outcome = e.fail(&buffer, FI_ETRUNC);
    EXPECT_EQ(outcome.failure.len, 200u);
    EXPECT_EQ(outcome.failure.olen, 700u);
    EXPECT_EQ(e.finish(&buffer).entry.flags, FI_MULTI_RECV);
  }
  team.meet();
}

PAIR_TEST(MultiReceive, IsTheDefaultOfAnEndpointThatSaysSo) {
  Options options = multi_options();
  options.rx_op_flags = FI_MULTI_RECV;
  Team team(side, options);
  Endpoint& e = team.endpoint;
  int context = 0;
  std::vector<unsigned char> buffer(200);
  if (!side.first()) {
    set_min_multi_recv(e, 100);
    e.must([&] { return fi_recv(e.ep(), buffer.data(), buffer.size(), nullptr, 0, &context); });
  }
  team.meet();
  const auto data = pattern(100, 1);
  if (side.first()) {
    for (int i = 0; i < 2; ++i) {
      e.must([&] { return fi_send(e.ep(), data.data(), data.size(), nullptr, team.peer(), &context); });
      e.finish(&context);
    }
  } else {
    EXPECT_EQ(e.finish(&context).entry.flags, FI_RECV | FI_MSG);
    EXPECT_EQ(e.finish(&context).entry.flags, FI_RECV | FI_MSG | FI_MULTI_RECV);
    EXPECT_TRUE(has_pattern(std::span(buffer).subspan(100), 1));
  }
  team.meet();
}

/// With FI_SOURCE_ERR the first message of an unknown sender carries its address; then it is inserted.
PAIR_TEST(SourceError, AnUnknownSenderIsNamed) {
  Options options;
  options.caps = FI_MSG | FI_SOURCE | FI_SOURCE_ERR;
  Endpoint e(options);
  const auto names = side.exchange(e.name());
  int context = 0;
  const auto data = pattern(100, 1);
  if (side.first()) {
    const fi_addr_t to = e.insert(names[1]);
    for (int i = 0; i < 2; ++i) {
      e.must([&] { return fi_send(e.ep(), data.data(), data.size(), nullptr, to, &context); });
      e.finish(&context);
      side.meet([&] { e.progress(); });
    }
  } else {
    std::vector<unsigned char> buffer(100);
    e.must([&] { return fi_recv(e.ep(), buffer.data(), buffer.size(), nullptr, FI_ADDR_UNSPEC, &context); });
    const Outcome outcome = e.fail(&context, FI_EADDRNOTAVAIL);
    EXPECT_TRUE(has_pattern(buffer, 1));
    EXPECT_EQ(outcome.failure.len, 100u);
    ASSERT_NE(outcome.failure.err_data, nullptr);
    const auto* address = static_cast<const unsigned char*>(outcome.failure.err_data);
    const fi_addr_t from = e.insert(Blob(address, address + outcome.failure.err_data_size));
    side.meet([&] { e.progress(); });
    e.must([&] { return fi_recv(e.ep(), buffer.data(), buffer.size(), nullptr, FI_ADDR_UNSPEC, &context); });
    EXPECT_EQ(e.finish(&context).source, from);
    side.meet([&] { e.progress(); });
  }
  side.meet([&] { e.progress(); });
}

}  // namespace
}  // namespace conformance
