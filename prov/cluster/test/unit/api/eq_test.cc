#include "api/eq.h"

#include "support/failing_memory.h"
#include "unit/api/api_world.h"

namespace cluster::api::test {
namespace {

class EqTest : public ApiTest {
 protected:
  EqTest() { open(FI_WAIT_UNSPEC); }
  ~EqTest() override { EXPECT_EQ(fi_close(&eq->fid), 0); }

  void open(fi_wait_obj wait) {
    fi_eq_attr attributes{};
    attributes.size = 32;
    attributes.wait_obj = wait;
    attributes.flags = FI_WRITE;
    ASSERT_EQ(fi_eq_open(fabric, &attributes, &eq, this), 0);
  }
  void write(std::uint64_t data) {
    const fi_eq_entry written{&eq->fid, this, data};
    ASSERT_EQ(fi_eq_write(eq, FI_NOTIFY, &written, sizeof written, 0), ssize_t{sizeof written});
  }

  fid_eq* eq = nullptr;
  std::uint32_t event = 99;
  fi_eq_entry entry{};
};

TEST_F(EqTest, ReadsEventsInOrder) {
  for (std::uint64_t i = 0; i < 1000; ++i) write(i);
  for (std::uint64_t i = 0; i < 1000; ++i) {
    for (const std::uint64_t flags : {FI_PEEK, 0ull}) {
      entry = {};
      event = 99;
      ASSERT_EQ(fi_eq_read(eq, &event, &entry, sizeof entry, flags), ssize_t{sizeof entry});
      EXPECT_EQ(event, std::uint32_t{FI_NOTIFY});
      EXPECT_EQ(entry.data, i);
      EXPECT_EQ(entry.fid, &eq->fid);
    }
  }
  EXPECT_EQ(fi_eq_read(eq, &event, &entry, sizeof entry, 0), -FI_EAGAIN);
  fi_eq_err_entry error{};
  EXPECT_EQ(fi_eq_readerr(eq, &error, 0), -FI_EAGAIN);
}

TEST_F(EqTest, HasALimit) {
  const fi_eq_entry full{};
  ssize_t result = 0;
  int written = 0;
  while ((result = fi_eq_write(eq, FI_NOTIFY, &full, sizeof full, 0)) > 0 && written < 1'000'000) ++written;
  EXPECT_EQ(result, -FI_EAGAIN);
  EXPECT_GE(written, 32);
}

/// Reads the one event, and then what tells that others are lost.
void expect_overrun_after_one(fid_eq* eq) {
  std::uint32_t event = 0;
  fi_eq_entry entry{};
  EXPECT_EQ(fi_eq_read(eq, &event, &entry, sizeof entry, 0), ssize_t{sizeof entry});
  EXPECT_EQ(entry.data, 1u);
  EXPECT_EQ(fi_eq_read(eq, &event, &entry, sizeof entry, FI_PEEK), -FI_EOVERRUN);
  EXPECT_EQ(fi_eq_sread(eq, &event, &entry, sizeof entry, -1, 0), -FI_EOVERRUN);
  EXPECT_EQ(fi_eq_read(eq, &event, &entry, sizeof entry, 0), -FI_EAGAIN);
}

TEST_F(EqTest, SaysThatAnEventIsLostForLackOfMemory) {
  write(1);
  const fi_eq_entry lost{&eq->fid, this, 2};
  {
    const cluster::test::FailingMemory none(0);
    static_cast<Eq*>(eq)->report(FI_NOTIFY, eq->fid, &lost, sizeof lost);
    static_cast<Eq*>(eq)->report_error(eq->fid, Status::unreachable);
  }
  expect_overrun_after_one(eq);
}

TEST_F(EqTest, SaysThatAnEventIsLostBecauseTheQueueIsFull) {
  const fi_eq_entry full{&eq->fid, this, 1};
  while (fi_eq_write(eq, FI_NOTIFY, &full, sizeof full, 0) > 0) ++entry.data;
  static_cast<Eq*>(eq)->report(FI_NOTIFY, eq->fid, &full, sizeof full);
  for (std::uint64_t left = entry.data; left > 1; --left) {
    fi_eq_entry read{};
    ASSERT_EQ(fi_eq_read(eq, &event, &read, sizeof read, 0), ssize_t{sizeof read});
  }
  expect_overrun_after_one(eq);
}

TEST_F(EqTest, WaitEndsWithAnEventOrTheTimeout) {
  const Time start = platform.clock().now();
  EXPECT_EQ(fi_eq_sread(eq, &event, &entry, sizeof entry, 20, 0), -FI_EAGAIN);
  const Duration waited = platform.clock().now() - start;
  EXPECT_GE(waited, 20ms);
  EXPECT_LE(waited, 21ms);
  write(3);
  EXPECT_EQ(fi_eq_sread(eq, &event, &entry, sizeof entry, -1, FI_PEEK), ssize_t{sizeof entry});
  EXPECT_EQ(fi_eq_sread(eq, &event, &entry, sizeof entry, -1, 0), ssize_t{sizeof entry});
  EXPECT_EQ(entry.data, 3u);
  EXPECT_EQ(fi_close(&eq->fid), 0);
  open(FI_WAIT_NONE);
  EXPECT_EQ(fi_eq_sread(eq, &event, &entry, sizeof entry, 1, 0), -FI_EINVAL);
}

TEST_F(EqTest, StaysOpenWhileBound) {
  EXPECT_EQ(fi_domain_bind(domain, &eq->fid, 0), 0);
  EXPECT_EQ(fi_close(&eq->fid), -FI_EBUSY);
  EXPECT_EQ(fi_close(&domain->fid), 0);
  EXPECT_EQ(fi_domain(fabric, &info.info, &domain, this), 0);
  fid_ep* endpoint = open_endpoint();
  EXPECT_EQ(fi_ep_bind(endpoint, &eq->fid, 0), 0);
  EXPECT_EQ(fi_close(&eq->fid), -FI_EBUSY);
  EXPECT_EQ(fi_close(&endpoint->fid), 0);
}

TEST_F(EqTest, OpenRefusesUnsupportedWaitObjects) {
  fi_eq_attr attributes{};
  attributes.wait_obj = FI_WAIT_MUTEX_COND;
  fid_eq* other = nullptr;
  EXPECT_EQ(fi_eq_open(fabric, &attributes, &other, nullptr), -FI_ENOSYS);
}

}  // namespace
}  // namespace cluster::api::test
