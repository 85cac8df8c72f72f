// Untagged messages between two processes: every call of the fi_msg family, every shape of buffer,
// sizes on both sides of each protocol's threshold, and what the completions say. fi_msg(3)
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "fabric.h"

namespace conformance {
namespace {

constexpr std::size_t kMessageSizes[] = {0,     1,     7,     8,      63,      64,           65,
                                         255,   1024,  1025,  4096,   16384,   32768,        32769,
                                         65535, 65536, 65537, 100000, 1 << 20, (5 << 20) + 3};

void expect_flags(const Outcome& outcome, std::uint64_t flags) { EXPECT_EQ(outcome.entry.flags, flags); }

PAIR_TEST(Message, EverySizeArrivesIntact) {
  Team team(side);
  Endpoint& e = team.endpoint;
  int context = 0;
  for (const std::size_t size : kMessageSizes) {
    SCOPED_TRACE(size);
    if (side.first()) {
      const auto data = pattern(size, size);
      e.must([&] { return fi_send(e.ep(), data.data(), size, nullptr, team.peer(), &context); });
      expect_flags(e.finish(&context), FI_MSG | FI_SEND);
    } else {
      std::vector<unsigned char> buffer(size + 1, 0xEE);
      e.must([&] { return fi_recv(e.ep(), buffer.data(), size, nullptr, team.peer(), &context); });
      const Outcome outcome = e.finish(&context);
      EXPECT_EQ(outcome.entry.len, size);
      EXPECT_EQ(outcome.source, team.peer());
      expect_flags(outcome, FI_MSG | FI_RECV);
      EXPECT_EQ(buffer[size], 0xEE) << "wrote behind the buffer";
      buffer.resize(size);
      EXPECT_TRUE(has_pattern(buffer, size));
    }
  }
}

PAIR_TEST(Message, BothWaysAtOnce) {
  Team team(side);
  Endpoint& e = team.endpoint;
  int in = 0;
  int out = 0;
  for (const std::size_t size : kMessageSizes) {
    SCOPED_TRACE(size);
    const auto mine = static_cast<std::uint64_t>(side.index());
    const auto data = pattern(size, size + mine);
    std::vector<unsigned char> buffer(size);
    e.must([&] { return fi_recv(e.ep(), buffer.data(), size, nullptr, FI_ADDR_UNSPEC, &in); });
    e.must([&] { return fi_send(e.ep(), data.data(), size, nullptr, team.peer(), &out); });
    e.finish(&out);
    e.finish(&in);
    EXPECT_TRUE(has_pattern(buffer, size + 1 - mine));
  }
}

PAIR_TEST(Message, GathersAndScattersEightPieces) {
  Team team(side);
  Endpoint& e = team.endpoint;
  int context = 0;
  for (const std::size_t scale : {1u, 100u, 5000u, 100000u}) {
    SCOPED_TRACE(scale);
    // Pieces of 1, 2, ... 7 units and an empty one; the receiver cuts the other way round.
    std::vector<std::size_t> sizes;
    for (std::size_t i = 0; i < 8; ++i) sizes.push_back((side.first() ? i : 7 - i) * scale);
    const std::size_t total = 28 * scale;
    auto data = side.first() ? pattern(total, scale) : std::vector<unsigned char>(total);
    std::vector<iovec> pieces;
    std::size_t at = 0;
    for (const std::size_t size : sizes) {
      pieces.push_back({data.data() + at, size});
      at += size;
    }
    if (side.first()) {
      e.must([&] { return fi_sendv(e.ep(), pieces.data(), nullptr, 8, team.peer(), &context); });
      e.finish(&context);
    } else {
      e.must([&] { return fi_recvv(e.ep(), pieces.data(), nullptr, 8, team.peer(), &context); });
      EXPECT_EQ(e.finish(&context).entry.len, total);
      EXPECT_TRUE(has_pattern(data, scale));
    }
  }
}

PAIR_TEST(Message, CarriesEightBytesOfData) {
  Team team(side);
  Endpoint& e = team.endpoint;
  constexpr std::uint64_t kData = 0x8877665544332211;
  int context = 0;
  for (const std::size_t size : {0u, 8u, 1000u, 20000u, 300000u}) {
    SCOPED_TRACE(size);
    std::vector<unsigned char> buffer = side.first() ? pattern(size, 3) : std::vector<unsigned char>(size);
    if (side.first()) {
      e.must([&] {
        return fi_senddata(e.ep(), buffer.data(), size, nullptr, kData + size, team.peer(), &context);
      });
      e.finish(&context);
    } else {
      e.must([&] { return fi_recv(e.ep(), buffer.data(), size, nullptr, team.peer(), &context); });
      const Outcome outcome = e.finish(&context);
      expect_flags(outcome, FI_MSG | FI_RECV | FI_REMOTE_CQ_DATA);
      EXPECT_EQ(outcome.entry.data, kData + size);
      EXPECT_TRUE(has_pattern(buffer, 3));
    }
  }
}

PAIR_TEST(Message, InjectLeavesTheBufferAtOnceAndReportsNothing) {
  Team team(side);
  Endpoint& e = team.endpoint;
  const std::size_t most = e.domain().info()->tx_attr->inject_size;
  constexpr int kRounds = 200;
  int context = 0;
  if (side.first()) {
    std::vector<unsigned char> buffer(most);
    for (int round = 0; round < kRounds; ++round) {
      const std::size_t size = static_cast<std::size_t>(round) * most / (kRounds - 1);
      const auto data = pattern(size, static_cast<std::uint64_t>(round));
      std::copy(data.begin(), data.end(), buffer.begin());
      e.must([&] {
        return round % 2 == 0 ? fi_inject(e.ep(), buffer.data(), size, team.peer())
                              : fi_injectdata(e.ep(), buffer.data(), size, 0xD0D0, team.peer());
      });
      std::fill(buffer.begin(), buffer.end(), 0xEE);
    }
    EXPECT_TRUE(e.silent(std::chrono::milliseconds(20)));
  } else {
    for (int round = 0; round < kRounds; ++round) {
      std::vector<unsigned char> buffer(most);
      e.must([&] { return fi_recv(e.ep(), buffer.data(), most, nullptr, FI_ADDR_UNSPEC, &context); });
      const Outcome outcome = e.finish(&context);
      EXPECT_EQ(outcome.entry.len, static_cast<std::size_t>(round) * most / (kRounds - 1));
      buffer.resize(outcome.entry.len);
      ASSERT_TRUE(has_pattern(buffer, static_cast<std::uint64_t>(round)));
      if (round % 2 == 1) {
        EXPECT_EQ(outcome.entry.data, 0xD0D0u);
      }
    }
  }
}

/// True once a process has been stopped (SIGSTOP).
bool is_stopped(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(file, line);
  const std::size_t name_end = line.rfind(')');
  return name_end != std::string::npos && line.size() > name_end + 2 && line[name_end + 2] == 'T';
}

/// None of its threads takes anything while a process is stopped: what is reported then has not been delivered.
PAIR_TEST(Message, DeliveryIsReportedWhenTheReceiverHasTheMessage) {
  Options options;
  options.tx_op_flags = FI_DELIVERY_COMPLETE;
  Team team(side, options);
  Endpoint& e = team.endpoint;
  int context = 0;
  std::vector<unsigned char> buffer(3000);
  for (const std::size_t size : {8u, 8u, 3000u}) {
    SCOPED_TRACE(size);
    if (side.first()) {
      pid_t receiver = 0;
      const Blob blob = side.receive_blob(1, [&e] { e.progress(); });
      std::memcpy(&receiver, blob.data(), sizeof receiver);
      while (!is_stopped(receiver)) yield_processor();
      e.must([&] { return fi_send(e.ep(), buffer.data(), size, nullptr, team.peer(), &context); });
      EXPECT_TRUE(e.silent(std::chrono::milliseconds(50)));
      kill(receiver, SIGCONT);
      e.finish(&context);
    } else {
      e.must([&] { return fi_recv(e.ep(), buffer.data(), size, nullptr, team.peer(), &context); });
      const pid_t me = getpid();
      const auto* bytes = reinterpret_cast<const unsigned char*>(&me);
      side.send_blob(0, Blob(bytes, bytes + sizeof me));
      raise(SIGSTOP);
      EXPECT_EQ(e.finish(&context).entry.len, size);
    }
    team.meet();
  }
}

PAIR_TEST(Message, SendmsgAndRecvmsgTakeFlags) {
  Team team(side);
  Endpoint& e = team.endpoint;
  int context = 0;
  const std::uint64_t sending[] = {0,
                                   FI_COMPLETION,
                                   FI_INJECT | FI_COMPLETION,
                                   FI_REMOTE_CQ_DATA | FI_COMPLETION,
                                   FI_INJECT_COMPLETE | FI_COMPLETION,
                                   FI_TRANSMIT_COMPLETE | FI_COMPLETION,
                                   FI_DELIVERY_COMPLETE | FI_COMPLETION,
                                   FI_MORE | FI_COMPLETION};
  for (const std::uint64_t flags : sending) {
    SCOPED_TRACE(fi_tostr(&flags, FI_TYPE_OP_FLAGS));
    std::vector<unsigned char> buffer = side.first() ? pattern(64, flags) : std::vector<unsigned char>(64);
    const iovec piece{buffer.data(), buffer.size()};
    const fi_msg message{&piece, nullptr, 1, team.peer(), &context, 0xDA7A};
    if (side.first()) {
      e.must([&] { return fi_sendmsg(e.ep(), &message, flags); });
      e.finish(&context);
    } else {
      e.must([&] { return fi_recvmsg(e.ep(), &message, FI_COMPLETION); });
      const Outcome outcome = e.finish(&context);
      EXPECT_TRUE(has_pattern(buffer, flags));
      const bool data = (flags & FI_REMOTE_CQ_DATA) != 0;
      expect_flags(outcome, FI_MSG | FI_RECV | (data ? FI_REMOTE_CQ_DATA : 0));
      if (data) {
        EXPECT_EQ(outcome.entry.data, 0xDA7Au);
      }
    }
  }
}

PAIR_TEST(Message, AMatchIsReportedWhenAReceiveHasTakenTheMessage) {
  Team team(side);
  Endpoint& e = team.endpoint;
  int context = 0;
  for (const std::size_t size : {0u, 64u, 5000u, 300000u}) {
    std::vector<unsigned char> buffer = side.first() ? pattern(size, 1) : std::vector<unsigned char>(size);
    const iovec piece{buffer.data(), size};
    const fi_msg_tagged message{&piece, nullptr, 1, team.peer(), 7, 0, &context, 0};
    if (side.first()) {
      e.must([&] {
        return fi_tsendmsg(e.ep(), &message, FI_COMPLETION | FI_MATCH_COMPLETE | FI_DELIVERY_COMPLETE);
      });
      EXPECT_TRUE(e.silent(std::chrono::milliseconds(100)));
    }
    team.meet();
    if (!side.first()) {
      e.must([&] { return fi_trecv(e.ep(), buffer.data(), size, nullptr, team.peer(), 7, 0, &context); });
    }
    e.finish(&context);
    EXPECT_TRUE(has_pattern(buffer, 1));
  }
  const fi_msg_tagged message{nullptr, nullptr, 0, team.peer(), 7, 0, &context, 0};
  EXPECT_EQ(fi_tsendmsg(e.ep(), &message, FI_COMMIT_COMPLETE), -FI_EBADFLAGS);
}

PAIR_TEST(Message, EmptyMessagesNeedNoBuffer) {
  Team team(side);
  Endpoint& e = team.endpoint;
  int context = 0;
  const fi_msg message{nullptr, nullptr, 0, team.peer(), &context, 0};
  if (side.first()) {
    e.must([&] { return fi_send(e.ep(), nullptr, 0, nullptr, team.peer(), &context); });
    e.finish(&context);
    e.must([&] { return fi_sendmsg(e.ep(), &message, FI_COMPLETION); });
    e.finish(&context);
    e.must([&] { return fi_inject(e.ep(), nullptr, 0, team.peer()); });
  } else {
    e.must([&] { return fi_recv(e.ep(), nullptr, 0, nullptr, FI_ADDR_UNSPEC, &context); });
    EXPECT_EQ(e.finish(&context).entry.len, 0u);
    e.must([&] { return fi_recvmsg(e.ep(), &message, FI_COMPLETION); });
    EXPECT_EQ(e.finish(&context).entry.len, 0u);
    e.must([&] { return fi_recvv(e.ep(), nullptr, nullptr, 0, team.peer(), &context); });
    EXPECT_EQ(e.finish(&context).entry.len, 0u);
  }
}

SINGLE_TEST(Message, AnEndpointCanWriteToItself) {
  Endpoint e;
  const fi_addr_t self = e.insert(e.name());
  int in = 0;
  int out = 0;
  for (const std::size_t size : {0u, 8u, 5000u, 40000u, 2000000u}) {
    SCOPED_TRACE(size);
    const auto data = pattern(size, 1);
    std::vector<unsigned char> buffer(size);
    const bool posted_first = size != 5000;
    const auto receive = [&] { return fi_recv(e.ep(), buffer.data(), size, nullptr, self, &in); };
    if (posted_first) e.must(receive);
    e.must([&] { return fi_send(e.ep(), data.data(), size, nullptr, self, &out); });
    if (!posted_first) e.must(receive);
    EXPECT_EQ(e.finish(&in).entry.len, size);
    e.finish(&out);
    EXPECT_TRUE(has_pattern(buffer, 1));
  }
}

PAIR_TEST(Message, TooLongForItsReceiveIsTruncatedAndSaysHowMuch) {
  Team team(side);
  Endpoint& e = team.endpoint;
  int context = 0;
  for (const std::size_t size : {2u, 100u, 20000u, 1000000u}) {
    for (const bool posted_first : {true, false}) {
      for (const std::size_t capacity : {std::size_t{0}, size / 2, size - 1}) {
        SCOPED_TRACE(testing::Message()
                     << size << " into " << capacity << (posted_first ? " posted" : " unexpected"));
        std::vector<unsigned char> buffer(capacity + 1, 0xEE);
        const auto receive = [&] {
          return fi_recv(e.ep(), buffer.data(), capacity, nullptr, FI_ADDR_UNSPEC, &context);
        };
        if (!side.first() && posted_first) e.must(receive);
        team.meet();
        if (side.first()) {
          const auto data = pattern(size, 9);
          e.must([&] { return fi_send(e.ep(), data.data(), size, nullptr, team.peer(), &context); });
          e.finish(&context);  // the sender has done nothing wrong
        } else {
          if (!posted_first) e.must(receive);
          const Outcome outcome = e.fail(&context, FI_ETRUNC);
          EXPECT_EQ(outcome.failure.olen, size - capacity);
          EXPECT_LE(outcome.failure.len, capacity);
          EXPECT_EQ(buffer[capacity], 0xEE) << "wrote behind the buffer";
        }
      }
    }
  }
}

}  // namespace
}  // namespace conformance
