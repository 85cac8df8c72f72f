// Completion queues in all formats, selective completion, waiting, counters, and event queues.
// fi_cq(3), fi_cntr(3), fi_eq(3)
#include "fabric.h"

namespace conformance {
namespace {

using std::chrono::milliseconds;

PAIR_TEST(CompletionQueue, SpeaksAllFormats) {
  for (const fi_cq_format format :
       {FI_CQ_FORMAT_CONTEXT, FI_CQ_FORMAT_MSG, FI_CQ_FORMAT_DATA, FI_CQ_FORMAT_TAGGED}) {
    SCOPED_TRACE(fi_tostr(&format, FI_TYPE_CQ_FORMAT));
    Options options;
    options.format = format;
    Team team(side, options);
    Endpoint& e = team.endpoint;
    constexpr int kCount = 10;
    int contexts[kCount];
    char buffers[kCount][16] = {};
    for (int i = 0; i < kCount; ++i) {
      if (side.first()) {
        e.must(
            [&] { return fi_tsenddata(e.ep(), buffers[i], 16, nullptr, 7, team.peer(), 5, &contexts[i]); });
      } else {
        e.must([&] { return fi_trecv(e.ep(), buffers[i], 16, nullptr, FI_ADDR_UNSPEC, 5, 0, &contexts[i]); });
      }
    }
    for (int& context : contexts) {
      const Outcome outcome = e.finish(&context);
      if (side.first() || format == FI_CQ_FORMAT_CONTEXT) continue;
      EXPECT_EQ(outcome.entry.len, 16u);
      // An entry without a data field need not say that there is data in it.
      const std::uint64_t optional = format == FI_CQ_FORMAT_MSG ? FI_REMOTE_CQ_DATA : 0;
      EXPECT_EQ(outcome.entry.flags | optional, std::uint64_t{FI_TAGGED | FI_RECV | FI_REMOTE_CQ_DATA});
      if (format != FI_CQ_FORMAT_MSG) {
        EXPECT_EQ(outcome.entry.data, 7u);
      }
      if (format == FI_CQ_FORMAT_TAGGED) {
        EXPECT_EQ(outcome.entry.tag, 5u);
      }
    }
  }
}

PAIR_TEST(CompletionQueue, FillsAnArrayInOneRead) {
  Team team(side);
  Endpoint& e = team.endpoint;
  constexpr std::size_t kCount = 20;
  int contexts[kCount];
  char buffers[kCount] = {};
  if (side.first()) {
    for (char value = 0; value < static_cast<char>(kCount); ++value) {
      e.must([&] { return fi_inject(e.ep(), &value, 1, team.peer()); });
    }
    return;
  }
  for (std::size_t i = 0; i < kCount; ++i) {
    e.must([&] { return fi_recv(e.ep(), &buffers[i], 1, nullptr, FI_ADDR_UNSPEC, &contexts[i]); });
  }
  std::size_t got = 0;
  const Deadline deadline(std::chrono::seconds(20));
  while (got < kCount && !deadline.passed()) {
    fi_cq_tagged_entry entries[7];
    const ssize_t count = fi_cq_read(e.rx(), entries, 7);
    if (count == -FI_EAGAIN) continue;
    ASSERT_GT(count, 0);
    ASSERT_LE(count, 7);
    for (ssize_t i = 0; i < count; ++i, ++got) EXPECT_EQ(entries[i].op_context, &contexts[got]);
  }
  EXPECT_EQ(got, kCount);
}

PAIR_TEST(CompletionQueue, SelectiveCompletionReportsOnlyWhatWasAskedForAndFailures) {
  Options options;
  options.bind_flags = FI_SELECTIVE_COMPLETION;
  Team team(side, options);
  Endpoint& e = team.endpoint;
  char buffer[8] = {};
  int quiet = 0;
  int loud = 0;
  const iovec piece{buffer, sizeof buffer};
  const fi_msg_tagged message{&piece, nullptr, 1, team.peer(), 2, 0, &loud, 0};
  const fi_msg_tagged hushed{&piece, nullptr, 1, team.peer(), 3, 0, &quiet, 0};
  if (side.first()) {
    e.must([&] { return fi_tsend(e.ep(), buffer, 8, nullptr, team.peer(), 1, &quiet); });
    e.must([&] { return fi_tsendmsg(e.ep(), &hushed, 0); });
    e.must([&] { return fi_tsendmsg(e.ep(), &message, FI_COMPLETION); });
    e.must([&] { return fi_tsend(e.ep(), buffer, 8, nullptr, team.peer(), 4, &quiet); });
    e.finish(&loud);
  } else {
    e.must([&] { return fi_trecv(e.ep(), buffer, 8, nullptr, team.peer(), 1, 0, &quiet); });
    e.must([&] { return fi_trecvmsg(e.ep(), &hushed, 0); });
    e.must([&] { return fi_trecvmsg(e.ep(), &message, FI_COMPLETION); });
    e.finish(&loud);
    EXPECT_TRUE(e.silent(milliseconds(20)));
    e.must([&] { return fi_trecv(e.ep(), buffer, 4, nullptr, team.peer(), 4, 0, &quiet); });
    e.fail(&quiet, FI_ETRUNC);
  }
  EXPECT_TRUE(e.silent(milliseconds(20)));
}

SINGLE_TEST(CompletionQueue, OpensInAnySizeAndRefusesUnknownAttributes) {
  Domain domain;
  for (const std::size_t size : {0u, 1u, 2u, 100u, 65536u}) {
    fi_cq_attr attr{};
    attr.size = size;
    fid_cq* cq = nullptr;
    ASSERT_EQ(fi_cq_open(domain.domain(), &attr, &cq, nullptr), 0) << size;
    EXPECT_EQ(fi_close(&cq->fid), 0);
  }
  fi_cq_attr attr{};
  attr.format = static_cast<fi_cq_format>(99);
  fid_cq* cq = nullptr;
  EXPECT_NE(fi_cq_open(domain.domain(), &attr, &cq, nullptr), 0);
}

SINGLE_TEST(CompletionQueue, IsEmptyAtFirst) {
  Endpoint e;
  fi_cq_tagged_entry entry;
  fi_cq_err_entry failure{};
  EXPECT_EQ(fi_cq_read(e.rx(), &entry, 1), -FI_EAGAIN);
  const ssize_t nothing = fi_cq_read(e.rx(), nullptr, 0);
  EXPECT_TRUE(nothing == 0 || nothing == -FI_EAGAIN) << nothing;
  EXPECT_EQ(fi_cq_readerr(e.rx(), &failure, 0), -FI_EAGAIN);
  char text[128];
  EXPECT_NE(fi_cq_strerror(e.rx(), FI_EIO, nullptr, text, sizeof text), nullptr);
}

SINGLE_TEST(CompletionQueue, AnErrorAtTheHeadStaysUntilItIsRead) {
  Endpoint e;
  char buffer = 0;
  int context = 0;
  ASSERT_EQ(fi_recv(e.ep(), &buffer, 1, nullptr, FI_ADDR_UNSPEC, &context), 0);
  ASSERT_EQ(fi_cancel(&e.ep()->fid, &context), 0);
  fi_cq_tagged_entry entry;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(fi_cq_read(e.rx(), &entry, 1), -FI_EAVAIL);
  fi_cq_err_entry failure{};
  EXPECT_EQ(fi_cq_readerr(e.rx(), &failure, 0), 1);
  EXPECT_EQ(failure.err, FI_ECANCELED);
  EXPECT_EQ(failure.op_context, &context);
  EXPECT_EQ(fi_cq_readerr(e.rx(), &failure, 0), -FI_EAGAIN);
  EXPECT_EQ(fi_cq_read(e.rx(), &entry, 1), -FI_EAGAIN);
}

PAIR_TEST(CompletionQueue, NeverOverruns) {
  Team team(side);
  Endpoint& e = team.endpoint;
  constexpr int kCount = 5000;
  std::vector<int> contexts(kCount);
  std::vector<unsigned char> buffers(kCount);
  for (int i = 0; i < kCount; ++i) {
    auto& buffer = buffers[static_cast<std::size_t>(i)];
    void* context = &contexts[static_cast<std::size_t>(i)];
    // Nothing is taken from the queues while these are posted: -FI_EAGAIN would mean that a queue is full.
    const Deadline deadline(std::chrono::seconds(20));
    ssize_t result = -FI_EAGAIN;
    while (result == -FI_EAGAIN && !deadline.passed()) {
      result = side.first() ? fi_send(e.ep(), &buffer, 1, nullptr, team.peer(), context)
                            : fi_recv(e.ep(), &buffer, 1, nullptr, team.peer(), context);
      if (result == -FI_EAGAIN) e.progress();
    }
    ASSERT_EQ(result, 0) << i;
  }
  for (int& context : contexts) e.finish(&context);
}

PAIR_TEST(CompletionQueue, ABlockedReadWakesUp) {
  Options options;
  options.wait = FI_WAIT_UNSPEC;
  Team team(side, options);
  Endpoint& e = team.endpoint;
  char value = 0;
  int context = 0;
  fi_cq_tagged_entry entry;
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(fi_cq_sread(e.rx(), &entry, 1, nullptr, 50), -FI_EAGAIN);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, milliseconds(40));
  for (int round = 0; round < 20; ++round) {
    team.meet();
    if (side.first()) {
      e.must([&] { return fi_inject(e.ep(), &value, 1, team.peer()); });
      e.progress();
    } else {
      e.must([&] { return fi_recv(e.ep(), &value, 1, nullptr, FI_ADDR_UNSPEC, &context); });
      EXPECT_EQ(fi_cq_sread(e.rx(), &entry, 1, nullptr, 10000), 1);
      EXPECT_EQ(entry.op_context, &context);
    }
  }
}

SINGLE_TEST(CompletionQueue, WithoutAWaitObjectThereIsNoBlockedRead) {
  Endpoint e;
  fi_cq_tagged_entry entry;
  EXPECT_LT(fi_cq_sread(e.rx(), &entry, 1, nullptr, 10), 0);
}

PAIR_TEST(Counter, CountsSendsReceivesAndInjects) {
  Options options;
  options.counted = FI_SEND | FI_RECV;
  Team team(side, options);
  Endpoint& e = team.endpoint;
  char buffer = 0;
  int context = 0;
  constexpr std::uint64_t kCount = 30;
  fid_cntr* counter = side.first() ? e.counter(FI_SEND) : e.counter(FI_RECV);
  for (std::uint64_t i = 0; i < kCount; ++i) {
    if (!side.first()) {
      e.must([&] { return fi_recv(e.ep(), &buffer, 1, nullptr, team.peer(), &context); });
    } else if (i % 2 == 0) {
      e.must([&] { return fi_send(e.ep(), &buffer, 1, nullptr, team.peer(), &context); });
    } else {
      e.must([&] { return fi_inject(e.ep(), &buffer, 1, team.peer()); });
    }
  }
  // Reading a counter alone must make progress.
  const Deadline deadline(std::chrono::seconds(20));
  while (fi_cntr_read(counter) < kCount && !deadline.passed()) {
  }
  EXPECT_EQ(fi_cntr_read(counter), kCount);
  EXPECT_EQ(fi_cntr_readerr(counter), 0u);
  EXPECT_EQ(fi_cntr_read(side.first() ? e.counter(FI_RECV) : e.counter(FI_SEND)), 0u);
}

SINGLE_TEST(Counter, CanBeSetAndWaitedFor) {
  Domain domain;
  fi_cntr_attr attr{};
  attr.wait_obj = FI_WAIT_UNSPEC;
  fid_cntr* raw = nullptr;
  ASSERT_EQ(fi_cntr_open(domain.domain(), &attr, &raw, nullptr), 0);
  const Owned<fid_cntr> counter(raw);
  const Deadline deadline(std::chrono::seconds(5));
  const auto reaches = [&](std::uint64_t value, auto read) {
    while (read(raw) != value && !deadline.passed()) {
    }
    return read(raw) == value;
  };
  EXPECT_EQ(fi_cntr_set(raw, 5), 0);
  EXPECT_TRUE(reaches(5, fi_cntr_read));
  EXPECT_EQ(fi_cntr_add(raw, 3), 0);
  EXPECT_TRUE(reaches(8, fi_cntr_read));
  EXPECT_EQ(fi_cntr_adderr(raw, 2), 0);
  EXPECT_TRUE(reaches(2, fi_cntr_readerr));
  EXPECT_EQ(fi_cntr_seterr(raw, 0), 0);
  EXPECT_EQ(fi_cntr_wait(raw, 8, 1000), 0);
  EXPECT_EQ(fi_cntr_wait(raw, 9, 50), -FI_ETIMEDOUT);
}

SINGLE_TEST(EventQueue, HoldsWhatIsWrittenInOrder) {
  const Info info = get_info({});
  ASSERT_NE(info, nullptr);
  fid_fabric* fabric = nullptr;
  ASSERT_EQ(fi_fabric(info->fabric_attr, &fabric, nullptr), 0);
  const Owned<fid_fabric> owned_fabric(fabric);
  fi_eq_attr attr{};
  attr.size = 32;
  attr.flags = FI_WRITE;
  attr.wait_obj = FI_WAIT_UNSPEC;
  fid_eq* raw = nullptr;
  ASSERT_EQ(fi_eq_open(fabric, &attr, &raw, nullptr), 0);
  const Owned<fid_eq> eq(raw);
  std::uint32_t event = 0;
  fi_eq_entry entry{};
  EXPECT_EQ(fi_eq_read(raw, &event, &entry, sizeof entry, 0), -FI_EAGAIN);
  fi_eq_err_entry failure{};
  EXPECT_EQ(fi_eq_readerr(raw, &failure, 0), -FI_EAGAIN);
  for (std::uint64_t i = 0; i < 20; ++i) {
    entry.fid = &eq->fid;
    entry.data = i;
    EXPECT_EQ(fi_eq_write(raw, FI_NOTIFY, &entry, sizeof entry, 0), static_cast<ssize_t>(sizeof entry));
  }
  EXPECT_EQ(fi_eq_read(raw, &event, &entry, sizeof entry, FI_PEEK), static_cast<ssize_t>(sizeof entry));
  EXPECT_EQ(entry.data, 0u);
  for (std::uint64_t i = 0; i < 20; ++i) {
    entry = {};
    ASSERT_EQ(i % 2 == 0 ? fi_eq_read(raw, &event, &entry, sizeof entry, 0)
                         : fi_eq_sread(raw, &event, &entry, sizeof entry, 1000, 0),
              static_cast<ssize_t>(sizeof entry));
    EXPECT_EQ(event, std::uint32_t{FI_NOTIFY});
    EXPECT_EQ(entry.data, i);
    EXPECT_EQ(entry.fid, &eq->fid);
  }
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(fi_eq_sread(raw, &event, &entry, sizeof entry, 50, 0), -FI_EAGAIN);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, milliseconds(40));
}

}  // namespace
}  // namespace conformance
