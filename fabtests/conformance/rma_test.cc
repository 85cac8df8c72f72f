// Remote reads and writes: by key and offset, every size, with data for the target, from read-only memory; forbidden
// memory stays untouched. fi_rma(3), fi_mr(3)
#include <rdma/fi_rma.h>

#include <algorithm>

#include "fabric.h"

namespace conformance {
namespace {

constexpr std::size_t kMemory = 6 << 20;
constexpr std::uint64_t kRmaKey = 0x8000000000000011;
constexpr std::size_t kRmaSizes[] = {0,     1,     8,     1024,   1400,    4096,         16384,
                                     32769, 65536, 65537, 100000, 1 << 20, (5 << 20) + 3};

Options rma_options() {
  Options options;
  options.caps = FI_MSG | FI_TAGGED | FI_RMA | FI_DIRECTED_RECV | FI_SOURCE;
  return options;
}

/// Memory of this side that the other may read and write.
struct SharedBytes {
  explicit SharedBytes(Team& team, std::uint64_t access = FI_REMOTE_READ | FI_REMOTE_WRITE)
      : bytes(kMemory, 0) {
    fid_mr* opened = nullptr;
    EXPECT_EQ(fi_mr_reg(team.endpoint.domain().domain(), bytes.data(), bytes.size(), access, 0, kRmaKey, 0,
                        &opened, nullptr),
              0);
    region.reset(opened);
    EXPECT_EQ(fi_mr_key(opened), kRmaKey);
    team.meet();
  }
  std::vector<unsigned char> bytes;
  Owned<fid_mr> region;
};

PAIR_TEST(Rma, WritesLandAndReadsBringThemBack) {
  Team team(side, rma_options());
  SharedBytes shared(team);
  Endpoint& e = team.endpoint;
  int context = 0;
  for (const std::size_t size : kRmaSizes) {
    SCOPED_TRACE(size);
    if (side.first()) {
      const auto data = pattern(size, size);
      e.must(
          [&] { return fi_write(e.ep(), data.data(), size, nullptr, team.peer(), 100, kRmaKey, &context); });
      EXPECT_EQ(e.finish(&context).entry.flags, FI_RMA | FI_WRITE);
      std::vector<unsigned char> back(size);
      e.must(
          [&] { return fi_read(e.ep(), back.data(), size, nullptr, team.peer(), 100, kRmaKey, &context); });
      EXPECT_EQ(e.finish(&context).entry.flags, FI_RMA | FI_READ);
      EXPECT_TRUE(has_pattern(back, size));
    }
    team.meet();
    if (!side.first()) {
      EXPECT_TRUE(has_pattern(std::span(shared.bytes).subspan(100, size), size));
      EXPECT_EQ(shared.bytes[99], 0);
      EXPECT_EQ(shared.bytes[100 + size], 0) << "wrote beyond the end";
      std::fill(shared.bytes.begin(), shared.bytes.end(), 0);
    }
    team.meet();
  }
}

PAIR_TEST(Rma, DataTellsTheTargetThatTheBytesAreThere) {
  Team team(side, rma_options());
  SharedBytes shared(team);
  Endpoint& e = team.endpoint;
  int context = 0;
  for (const std::size_t size : {0u, 8u, 3000u, 200000u}) {
    SCOPED_TRACE(size);
    if (side.first()) {
      const auto data = pattern(size, size);
      e.must([&] {
        return fi_writedata(e.ep(), data.data(), size, nullptr, 0x1122334455667788, team.peer(), 0, kRmaKey,
                            &context);
      });
      e.finish(&context);
    } else {
      const std::optional<Outcome> remote = e.next();
      ASSERT_TRUE(remote.has_value());
      EXPECT_EQ(remote->entry.flags, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
      EXPECT_EQ(remote->entry.data, 0x1122334455667788u);
      EXPECT_EQ(remote->entry.len, size);
      EXPECT_EQ(remote->entry.op_context, nullptr);
      EXPECT_TRUE(has_pattern(std::span(shared.bytes).first(size), size));
    }
    team.meet();
  }
}

PAIR_TEST(Rma, InjectedAndReadOnlySources) {
  Options options = rma_options();
  options.caps |= FI_FENCE;
  Team team(side, options);
  SharedBytes shared(team);
  Endpoint& e = team.endpoint;
  static const char kConstant[] = "read-only memory is a lawful source";
  int context = 0;
  if (side.first()) {
    unsigned char changing[64];
    for (unsigned i = 0; i < 200; ++i) {
      std::fill(std::begin(changing), std::end(changing), static_cast<unsigned char>(i + 1));
      e.must([&] { return fi_inject_write(e.ep(), changing, 64, team.peer(), 64 * i, kRmaKey); });
      std::fill(std::begin(changing), std::end(changing), static_cast<unsigned char>(0));
    }
    const iovec source{const_cast<char*>(kConstant), sizeof kConstant};
    const fi_rma_iov range{1 << 20, sizeof kConstant, kRmaKey};
    const fi_msg_rma message{&source, nullptr, 1, team.peer(), &range, 1, &context, 0};
    e.must([&] { return fi_writemsg(e.ep(), &message, FI_COMPLETION | FI_FENCE); });
    e.finish(&context);  // behind the injected ones: all have landed
  }
  team.meet();
  if (!side.first()) {
    for (unsigned i = 0; i < 200; ++i) {
      ASSERT_EQ(
          std::count(&shared.bytes[64 * i], &shared.bytes[64 * i] + 64, static_cast<unsigned char>(i + 1)),
          64)
          << i;
    }
    EXPECT_EQ(std::memcmp(&shared.bytes[1 << 20], kConstant, sizeof kConstant), 0);
  }
}

PAIR_TEST(Rma, SeveralRangesOnBothSides) {
  Team team(side, rma_options());
  SharedBytes shared(team);
  Endpoint& e = team.endpoint;
  int context = 0;
  if (side.first()) {
    const auto data = pattern(50000, 5);
    const iovec source[] = {{const_cast<unsigned char*>(data.data()), 1},
                            {const_cast<unsigned char*>(data.data()) + 1, 49999}};
    const fi_rma_iov ranges[] = {{7, 20000, kRmaKey}, {100000, 1, kRmaKey}, {300000, 29999, kRmaKey}};
    fi_msg_rma message{source, nullptr, 2, team.peer(), ranges, 3, &context, 0};
    e.must([&] { return fi_writemsg(e.ep(), &message, FI_COMPLETION | FI_DELIVERY_COMPLETE); });
    e.finish(&context);
    std::vector<unsigned char> back(50000);
    const iovec target{back.data(), back.size()};
    message.msg_iov = &target;
    message.iov_count = 1;
    e.must([&] { return fi_readmsg(e.ep(), &message, FI_COMPLETION); });
    e.finish(&context);
    EXPECT_TRUE(has_pattern(back, 5));
    EXPECT_TRUE(e.silent(std::chrono::milliseconds(20))) << "one operation, one completion";
  }
  team.meet();
}

PAIR_TEST(Rma, EightRangesOfEachSideInEveryCall) {
  Team team(side, rma_options());
  SharedBytes shared(team);
  Endpoint& e = team.endpoint;
  constexpr std::size_t kPieces = 8;
  for (const std::size_t size : {std::size_t{8}, std::size_t{999}, std::size_t{40001}}) {
    SCOPED_TRACE(size);
    if (side.first()) {
      auto data = pattern(size * kPieces, size);
      std::vector<unsigned char> back(data.size());
      iovec source[kPieces], target[kPieces];
      fi_rma_iov there[kPieces];
      for (std::size_t i = 0; i < kPieces; ++i) {
        source[i] = {data.data() + i * size, size};
        target[i] = {back.data() + i * size, size};
        there[i] = {(kPieces - 1 - i) * 2 * size, size, kRmaKey};
      }
      fi_msg_rma message{source, nullptr, kPieces, team.peer(), there, kPieces, &message, 0};
      e.must([&] { return fi_writemsg(e.ep(), &message, FI_DELIVERY_COMPLETE); });
      e.finish(&message);
      message.msg_iov = target;
      e.must([&] { return fi_readmsg(e.ep(), &message, 0); });
      e.finish(&message);
      EXPECT_TRUE(has_pattern(back, size));
      e.must([&] { return fi_writev(e.ep(), source, nullptr, kPieces, team.peer(), 0, kRmaKey, &message); });
      e.finish(&message);
      std::fill(back.begin(), back.end(), static_cast<unsigned char>(0));
      e.must([&] { return fi_readv(e.ep(), target, nullptr, kPieces, team.peer(), 0, kRmaKey, &message); });
      e.finish(&message);
      EXPECT_TRUE(has_pattern(back, size));
      const iovec nine[kPieces + 1] = {};
      EXPECT_EQ(fi_writev(e.ep(), nine, nullptr, kPieces + 1, team.peer(), 0, kRmaKey, nullptr), -FI_EINVAL);
      const fi_rma_iov too_many[kPieces + 1] = {};
      message.rma_iov = too_many;
      message.rma_iov_count = kPieces + 1;
      EXPECT_EQ(fi_writemsg(e.ep(), &message, 0), -FI_EINVAL);
    }
    team.meet();
  }
}

PAIR_TEST(Rma, WhatIsNotAllowedFailsHereAndTouchesNothingThere) {
  Team team(side, rma_options());
  SharedBytes shared(team, FI_REMOTE_READ);
  Endpoint& e = team.endpoint;
  int context = 0;
  if (side.first()) {
    for (const std::size_t size : {8u, 5000u, 100000u}) {
      SCOPED_TRACE(size);
      std::vector<unsigned char> bytes(size, 0xEE);
      const auto write = [&](std::uint64_t address, std::uint64_t key) {
        e.must([&] {
          return fi_write(e.ep(), bytes.data(), size, nullptr, team.peer(), address, key, &context);
        });
        e.fail(&context, FI_EACCES);
      };
      const auto read = [&](std::uint64_t address, std::uint64_t key) {
        e.must([&] {
          return fi_read(e.ep(), bytes.data(), size, nullptr, team.peer(), address, key, &context);
        });
        e.fail(&context, FI_EACCES);
      };
      write(0, kRmaKey);
      write(0, kRmaKey + 1);
      read(0, kRmaKey + 1);
      read(kMemory - size + 1, kRmaKey);
      read(~0ull - 3, kRmaKey);
    }
  }
  team.meet();
  EXPECT_EQ(std::count(shared.bytes.begin(), shared.bytes.end(), 0), std::ptrdiff_t(kMemory));
}

PAIR_TEST(Rma, ASendIsSeenAfterTheWritesBeforeIt) {
  Team team(side, rma_options());
  SharedBytes shared(team);
  Endpoint& e = team.endpoint;
  int write_context = 0;
  int message_context = 0;
  unsigned char note = 0;
  for (const std::size_t size : {8u, 4000u, 600000u}) {
    SCOPED_TRACE(size);
    if (side.first()) {
      const auto data = pattern(size, size);
      e.must([&] {
        return fi_write(e.ep(), data.data(), size, nullptr, team.peer(), 0, kRmaKey, &write_context);
      });
      e.must([&] { return fi_send(e.ep(), &note, 1, nullptr, team.peer(), &message_context); });
      e.finish(&write_context);
      e.finish(&message_context);
    } else {
      e.must([&] { return fi_recv(e.ep(), &note, 1, nullptr, team.peer(), &message_context); });
      e.finish(&message_context);
      EXPECT_TRUE(has_pattern(std::span(shared.bytes).first(size), size));
    }
    team.meet();
  }
}

PAIR_TEST(Rma, AFencedReadComesBehindTheWritesBeforeIt) {
  Options options = rma_options();
  options.caps |= FI_FENCE;
  Team team(side, options);
  SharedBytes shared(team);
  Endpoint& e = team.endpoint;
  int write_context = 0;
  int read_context = 0;
  for (const std::size_t size : {8u, 4000u, 600000u, 5u << 20}) {
    SCOPED_TRACE(size);
    if (side.first()) {
      const auto data = pattern(size, size);
      unsigned char back[8] = {};
      const iovec target{back, sizeof back};
      const fi_rma_iov end{size - sizeof back, sizeof back, kRmaKey};
      const fi_msg_rma message{&target, nullptr, 1, team.peer(), &end, 1, &read_context, 0};
      e.must([&] {
        return fi_write(e.ep(), data.data(), size, nullptr, team.peer(), 0, kRmaKey, &write_context);
      });
      e.must([&] { return fi_readmsg(e.ep(), &message, FI_COMPLETION | FI_FENCE); });
      e.finish(&read_context);
      e.finish(&write_context);
      EXPECT_EQ(std::memcmp(back, data.data() + size - sizeof back, sizeof back), 0);
    }
    team.meet();
    if (!side.first()) std::fill(shared.bytes.begin(), shared.bytes.end(), 0);
    team.meet();
  }
}

/// Where its memory is in reach the target makes no libfabric call at all, from fi_enable on.
PAIR_TEST(Rma, ATargetThatSleepsIsWrittenAndRead) {
  Options options = rma_options();
  options.caps |= FI_FENCE;
  options.progress = FI_PROGRESS_MANUAL;
  Team team(side, options);
  SharedBytes shared(team);
  if (!side.first() && memory_in_reach()) return side.meet();
  if (side.first()) {
    Endpoint& e = team.endpoint;
    int context = 0;
    for (const std::size_t size : kRmaSizes) {
      SCOPED_TRACE(size);
      const auto data = pattern(size, size + 1);
      e.must(
          [&] { return fi_write(e.ep(), data.data(), size, nullptr, team.peer(), 100, kRmaKey, &context); });
      e.finish(&context);
      std::vector<unsigned char> back(size);
      const iovec target{back.data(), size};
      const fi_rma_iov range{100, size, kRmaKey};
      const fi_msg_rma message{&target, nullptr, 1, team.peer(), &range, 1, &context, 0};
      e.must([&] { return fi_readmsg(e.ep(), &message, FI_COMPLETION | FI_FENCE); });
      e.finish(&context);
      EXPECT_TRUE(has_pattern(back, size + 1));
    }
    unsigned char note = 42;
    unsigned char back = 0;
    e.must([&] { return fi_inject_write(e.ep(), &note, 1, team.peer(), 7, kRmaKey); });
    e.must([&] { return fi_send(e.ep(), &note, 1, nullptr, team.peer(), &note); });
    const iovec target{&back, 1};
    const fi_rma_iov range{7, 1, kRmaKey};
    const fi_msg_rma message{&target, nullptr, 1, team.peer(), &range, 1, &context, 0};
    e.must([&] { return fi_readmsg(e.ep(), &message, FI_COMPLETION | FI_FENCE); });
    e.finish(&context);
    EXPECT_EQ(back, 42) << "a message that the target has not received is not waited for";
    e.must([&] { return fi_write(e.ep(), &note, 1, nullptr, team.peer(), 0, kRmaKey + 1, &context); });
    e.fail(&context, FI_EACCES);
  }
  team.meet();
}

SINGLE_TEST(Rma, KeysAreTheApplicationsAndFreeAgainAfterClose) {
  Endpoint e(rma_options());
  unsigned char memory[16];
  fid_domain* domain = e.domain().domain();
  const auto reg = [&](void* start, std::size_t size, std::uint64_t access, fid_mr** mr) {
    return fi_mr_reg(domain, start, size, access, 0, kRmaKey, 0, mr, nullptr);
  };
  fid_mr* first = nullptr;
  fid_mr* second = nullptr;
  ASSERT_EQ(reg(memory, sizeof memory, FI_REMOTE_WRITE, &first), 0);
  EXPECT_EQ(reg(memory, sizeof memory, FI_REMOTE_WRITE, &second), -FI_ENOKEY);
  ASSERT_EQ(reg(memory, sizeof memory, FI_SEND | FI_RECV, &second), 0) << "local use needs no key";
  EXPECT_EQ(fi_close(&second->fid), 0);
  EXPECT_EQ(fi_close(&domain->fid), -FI_EBUSY);
  EXPECT_EQ(fi_close(&first->fid), 0);
  ASSERT_EQ(reg(nullptr, SIZE_MAX, FI_REMOTE_READ | FI_REMOTE_WRITE, &first), 0) << "all memory there is";
  EXPECT_EQ(fi_close(&first->fid), 0);
  ASSERT_EQ(reg(memory, 0, FI_REMOTE_READ, &first), 0) << "nothing at all";
  EXPECT_EQ(fi_close(&first->fid), 0);
  const iovec vector{memory, sizeof memory};
  fi_mr_attr attributes{};
  attributes.mr_iov = &vector;
  attributes.iov_count = 1;
  attributes.access = FI_REMOTE_READ;
  EXPECT_EQ(fi_mr_regattr(domain, &attributes, 1ull << 40, &first), -FI_EBADFLAGS) << "a flag of the future";
}

}  // namespace
}  // namespace conformance
