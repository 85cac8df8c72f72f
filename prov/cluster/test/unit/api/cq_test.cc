// Entries, formats and errors of a completion queue that the test fills.
#include "api/cq.h"

#include "unit/api/api_world.h"

namespace cluster::api::test {
namespace {

using protocol::Completion;

class CqTest : public ApiTest {
 protected:
  ~CqTest() override { close(); }

  void open(fi_cq_format format, fi_wait_obj wait = FI_WAIT_NONE) {
    close();
    cq = open_cq(format, wait);
  }
  void close() {
    if (cq == nullptr) return;
    EXPECT_EQ(fi_close(&cq->fid), 0);
    cq = nullptr;
  }
  void push(const Completion& completion) { static_cast<Cq*>(cq)->queue().push(completion); }

  static Completion received() {
    Completion completion;
    completion.context = &completion_context;
    completion.kind = Completion::Kind::receive;
    completion.tagged = true;
    completion.has_data = true;
    completion.tag = 0xabcdef0123456789;
    completion.data = 42;
    completion.buffer = &completion_buffer;
    completion.length = 17;
    completion.source = 5;
    return completion;
  }
  static Completion sent() {
    Completion completion;
    completion.context = &completion_context;
    return completion;
  }
  static Completion failed(Status status) {
    Completion completion = received();
    completion.status = status;
    completion.lost = 3;
    completion.peer = host(9, 1234);
    return completion;
  }

  static inline int completion_context;
  static inline int completion_buffer;
  fid_cq* cq = nullptr;
};

TEST_F(CqTest, WritesExactlyTheSizeOfEachFormat) {
  open(FI_CQ_FORMAT_TAGGED);
  push(received());
  fi_cq_tagged_entry tagged{};
  ASSERT_EQ(fi_cq_read(cq, &tagged, 1), 1);
  EXPECT_EQ(tagged.op_context, &completion_context);
  EXPECT_EQ(tagged.flags, FI_TAGGED | FI_RECV | FI_REMOTE_CQ_DATA);
  EXPECT_EQ(tagged.len, 17u);
  EXPECT_EQ(tagged.buf, &completion_buffer);
  EXPECT_EQ(tagged.data, 42u);
  EXPECT_EQ(tagged.tag, 0xabcdef0123456789u);

  open(FI_CQ_FORMAT_DATA);
  push(received());
  push(received());
  fi_cq_data_entry data[3] = {};
  ASSERT_EQ(fi_cq_read(cq, data, 3), 2);
  EXPECT_EQ(data[1].data, 42u);
  EXPECT_EQ(data[1].flags, FI_TAGGED | FI_RECV | FI_REMOTE_CQ_DATA);
  EXPECT_EQ(data[2].op_context, nullptr);

  open(FI_CQ_FORMAT_MSG);
  push(received());
  fi_cq_msg_entry message[2] = {};
  ASSERT_EQ(fi_cq_read(cq, message, 2), 1);
  EXPECT_EQ(message[0].flags, FI_TAGGED | FI_RECV) << "no place for the data, no word of it";
  EXPECT_EQ(message[0].len, 17u);
  EXPECT_EQ(message[1].op_context, nullptr);

  for (const fi_cq_format format : {FI_CQ_FORMAT_CONTEXT, FI_CQ_FORMAT_UNSPEC}) {
    open(format);
    push(received());
    fi_cq_entry context[2] = {};
    ASSERT_EQ(fi_cq_read(cq, context, 2), 1);
    EXPECT_EQ(context[0].op_context, &completion_context);
    EXPECT_EQ(context[1].op_context, nullptr);
  }
}

TEST_F(CqTest, FlagsHaveOperationAndDirectionOnly) {
  open(FI_CQ_FORMAT_TAGGED);
  Completion completion = sent();
  push(completion);
  completion.tagged = true;
  push(completion);
  completion = received();
  completion.tagged = completion.has_data = false;
  push(completion);
  fi_cq_tagged_entry entries[3] = {};
  ASSERT_EQ(fi_cq_read(cq, entries, 3), 3);
  EXPECT_EQ(entries[0].flags, FI_MSG | FI_SEND);
  EXPECT_EQ(entries[1].flags, FI_TAGGED | FI_SEND);
  EXPECT_EQ(entries[2].flags, FI_MSG | FI_RECV);
}

TEST_F(CqTest, ReadfromReturnsSources) {
  open(FI_CQ_FORMAT_CONTEXT);
  push(received());
  Completion unknown = received();
  unknown.source = protocol::kAddrNotAvail;
  push(unknown);
  fi_cq_entry entries[2];
  fi_addr_t sources[2] = {};
  ASSERT_EQ(fi_cq_readfrom(cq, entries, 2, sources), 2);
  EXPECT_EQ(sources[0], 5u);
  EXPECT_EQ(sources[1], FI_ADDR_NOTAVAIL);
}

TEST_F(CqTest, StopsAtErrorsUntilTheyAreRead) {
  open(FI_CQ_FORMAT_TAGGED);
  push(sent());
  push(failed(Status::truncated));
  push(sent());
  fi_cq_tagged_entry entries[3] = {};
  fi_cq_err_entry error{};
  EXPECT_EQ(fi_cq_readerr(cq, &error, 0), -FI_EAGAIN) << "the head is good";
  EXPECT_EQ(fi_cq_read(cq, entries, 3), 1);
  EXPECT_EQ(fi_cq_read(cq, entries, 3), -FI_EAVAIL);
  EXPECT_EQ(fi_cq_read(cq, entries, 3), -FI_EAVAIL);
  ASSERT_EQ(fi_cq_readerr(cq, &error, 0), 1);
  EXPECT_EQ(error.err, FI_ETRUNC);
  EXPECT_EQ(error.op_context, &completion_context);
  EXPECT_EQ(error.flags, FI_TAGGED | FI_RECV | FI_REMOTE_CQ_DATA);
  EXPECT_EQ(error.len, 17u);
  EXPECT_EQ(error.olen, 3u);
  EXPECT_EQ(error.data, 42u);
  EXPECT_EQ(error.tag, 0xabcdef0123456789u);
  EXPECT_EQ(error.buf, &completion_buffer);
  EXPECT_EQ(fi_cq_read(cq, entries, 3), 1);
  EXPECT_EQ(fi_cq_readerr(cq, &error, 0), -FI_EAGAIN);
  EXPECT_EQ(fi_cq_read(cq, entries, 3), -FI_EAGAIN);
}

TEST_F(CqTest, EveryStatusHasALibfabricErrno) {
  open(FI_CQ_FORMAT_TAGGED);
  const std::pair<Status, int> expected[] = {
      {Status::truncated, FI_ETRUNC},     {Status::canceled, FI_ECANCELED},
      {Status::no_message, FI_ENOMSG},    {Status::unreachable, FI_EHOSTUNREACH},
      {Status::refused, FI_ECONNREFUSED}, {Status::reset, FI_ECONNRESET},
  };
  for (const auto& [status, number] : expected) {
    push(failed(status));
    fi_cq_err_entry error{};
    ASSERT_EQ(fi_cq_readerr(cq, &error, 0), 1);
    EXPECT_EQ(error.err, number);
    const char* text = fi_cq_strerror(cq, error.prov_errno, error.err_data, nullptr, 0);
    EXPECT_EQ(std::string(text), describe(status) + std::string(": 10.0.0.9:1234"));
    char mine[12];
    fi_cq_strerror(cq, error.prov_errno, error.err_data, mine, sizeof mine);
    EXPECT_EQ(std::string(mine), std::string(text).substr(0, 11));
  }
}

TEST_F(CqTest, ErrorDataIsWrittenWhereItFits) {
  open(FI_CQ_FORMAT_TAGGED);
  sockaddr_in mine{};
  fi_cq_err_entry error{};
  push(failed(Status::reset));
  ASSERT_EQ(fi_cq_readerr(cq, &error, 0), 1);
  ASSERT_EQ(error.err_data_size, sizeof mine) << "lent by the queue";
  EXPECT_EQ(SocketAddress::from(static_cast<const sockaddr*>(error.err_data), error.err_data_size),
            host(9, 1234));

  push(failed(Status::reset));
  error.err_data = &mine;
  error.err_data_size = sizeof mine;
  ASSERT_EQ(fi_cq_readerr(cq, &error, 0), 1);
  EXPECT_EQ(error.err_data, &mine);
  EXPECT_EQ(error.err_data_size, sizeof mine);
  EXPECT_EQ(ntohs(mine.sin_port), 1234);

  push(failed(Status::reset));
  mine = {};
  error.err_data_size = 4;
  ASSERT_EQ(fi_cq_readerr(cq, &error, 0), 1);
  EXPECT_EQ(error.err_data_size, 0u);
  EXPECT_EQ(mine.sin_port, 0);

  Completion unnamed = failed(Status::no_message);
  unnamed.peer = {};
  push(unnamed);
  error.err_data_size = 0;
  ASSERT_EQ(fi_cq_readerr(cq, &error, 0), 1);
  EXPECT_EQ(error.err_data, nullptr);
  EXPECT_EQ(error.err_data_size, 0u);
}

TEST_F(CqTest, ErrorEntriesHaveTheSizeOfTheirVersion) {
  open(FI_CQ_FORMAT_TAGGED);
  constexpr std::size_t kWithSource = 88, kEnd = 96;
  const std::pair<std::uint32_t, std::size_t> expected[] = {
      {FI_VERSION(1, 4), 72}, {FI_VERSION(1, 17), 80}, {FI_VERSION(1, 20), 88}, {FI_VERSION(2, 5), 88}};
  for (const auto& [version, size] : expected) {
    fabric->api_version = version;
    alignas(fi_cq_err_entry) std::byte bytes[kEnd];
    std::memset(bytes, 0xee, sizeof bytes);
    auto* error = reinterpret_cast<fi_cq_err_entry*>(bytes);
    if (size > 72) error->err_data_size = 0;
    push(failed(Status::reset));
    ASSERT_EQ(fi_cq_readerr(cq, error, 0), 1);
    for (std::size_t i = size; i < sizeof bytes; ++i) EXPECT_EQ(bytes[i], std::byte{0xee}) << version;
    if (size == kWithSource) {
      fi_addr_t source = 0;
      std::memcpy(&source, bytes + 80, sizeof source);
      EXPECT_EQ(source, 5u);
    }
  }
}

TEST_F(CqTest, ReadingZeroEntriesRemovesNone) {
  open(FI_CQ_FORMAT_TAGGED);
  EXPECT_EQ(fi_cq_read(cq, nullptr, 0), -FI_EAGAIN);
  push(sent());
  EXPECT_EQ(fi_cq_read(cq, nullptr, 0), 0);
  fi_cq_tagged_entry entry{};
  EXPECT_EQ(fi_cq_read(cq, &entry, 1), 1);
}

TEST_F(CqTest, WaitEndsWithAnEntryOrTheTimeout) {
  open(FI_CQ_FORMAT_TAGGED, FI_WAIT_UNSPEC);
  fi_cq_tagged_entry entry{};
  const Time start = platform.clock().now();
  EXPECT_EQ(fi_cq_sread(cq, &entry, 1, nullptr, 10), -FI_EAGAIN);
  EXPECT_GE(platform.clock().now() - start, 10ms);
  push(sent());
  fi_addr_t source = 0;
  EXPECT_EQ(fi_cq_sreadfrom(cq, &entry, 1, &source, nullptr, -1), 1);
  EXPECT_EQ(source, FI_ADDR_NOTAVAIL);
  push(failed(Status::reset));
  EXPECT_EQ(fi_cq_sread(cq, &entry, 1, nullptr, -1), -FI_EAVAIL);
}

TEST_F(CqTest, ASignalIsKeptUntilTheNextWait) {
  open(FI_CQ_FORMAT_TAGGED, FI_WAIT_UNSPEC);
  fi_cq_tagged_entry entry{};
  EXPECT_EQ(fi_cq_signal(cq), 0);
  EXPECT_EQ(fi_cq_sread(cq, &entry, 1, nullptr, -1), -FI_EAGAIN);
  EXPECT_EQ(fi_cq_signal(cq), 0);
  push(sent());
  EXPECT_EQ(fi_cq_sread(cq, &entry, 1, nullptr, -1), 1) << "what is there goes first";
}

TEST_F(CqTest, WaitNeedsAWaitObject) {
  open(FI_CQ_FORMAT_TAGGED);
  fi_cq_tagged_entry entry{};
  EXPECT_EQ(fi_cq_sread(cq, &entry, 1, nullptr, 1), -FI_EINVAL);
  EXPECT_EQ(fi_cq_signal(cq), -FI_EINVAL);
  fi_cq_attr attributes{};
  fid_cq* other = nullptr;
  for (const fi_wait_obj wait : {FI_WAIT_MUTEX_COND, FI_WAIT_POLLFD}) {
    attributes.wait_obj = wait;
    EXPECT_EQ(fi_cq_open(domain, &attributes, &other, nullptr), -FI_ENOSYS);
  }
  attributes.wait_obj = FI_WAIT_SET;
  EXPECT_EQ(fi_cq_open(domain, &attributes, &other, nullptr), -FI_EINVAL) << "no wait set is named";
}

TEST_F(CqTest, OpenAcceptsAnySizeAndIgnoresAffinity) {
  for (std::size_t size = 0; size <= 131072; size = size * 2 + 1) {
    fi_cq_attr attributes{};
    attributes.size = size;
    attributes.flags = FI_AFFINITY;
    fid_cq* other = nullptr;
    ASSERT_EQ(fi_cq_open(domain, &attributes, &other, nullptr), 0);
    EXPECT_EQ(fi_close(&other->fid), 0);
  }
  fid_cq* other = nullptr;
  fi_cq_attr attributes{};
  attributes.flags = FI_PEER;
  EXPECT_EQ(fi_cq_open(domain, &attributes, &other, nullptr), -FI_ENOSYS);
}

}  // namespace
}  // namespace cluster::api::test
