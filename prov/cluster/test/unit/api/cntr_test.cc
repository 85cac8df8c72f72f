#include "api/cntr.h"

#include "unit/api/api_world.h"

namespace cluster::api::test {
namespace {

class CntrTest : public ApiTest {
 protected:
  CntrTest() : cntr(open_cntr()) {}
  ~CntrTest() override { EXPECT_EQ(fi_close(&cntr->fid), 0); }
  fid_cntr* cntr;
};

TEST_F(CntrTest, CountsSuccessesAndErrorsSeparately) {
  EXPECT_EQ(fi_cntr_set(cntr, 10), 0);
  EXPECT_EQ(fi_cntr_add(cntr, 5), 0);
  EXPECT_EQ(fi_cntr_seterr(cntr, 3), 0);
  EXPECT_EQ(fi_cntr_adderr(cntr, 1), 0);
  EXPECT_EQ(fi_cntr_read(cntr), 15u);
  EXPECT_EQ(fi_cntr_readerr(cntr), 4u);
}

TEST_F(CntrTest, WaitEndsAtTheThresholdOrTheTimeout) {
  EXPECT_EQ(fi_cntr_wait(cntr, 0, 0), 0);
  EXPECT_EQ(fi_cntr_wait(cntr, 1, 0), -FI_ETIMEDOUT);
  const Time start = platform.clock().now();
  EXPECT_EQ(fi_cntr_wait(cntr, 1, 10), -FI_ETIMEDOUT);
  EXPECT_GE(platform.clock().now() - start, 10ms);
  fi_cntr_add(cntr, 1);
  EXPECT_EQ(fi_cntr_wait(cntr, 1, -1), 0);
}

TEST_F(CntrTest, OldErrorsDoNotEndAWait) {
  fi_cntr_adderr(cntr, 1);
  EXPECT_EQ(fi_cntr_wait(cntr, 1, 1), -FI_ETIMEDOUT);
}

TEST_F(CntrTest, OpenRefusesUnsupportedAttributes) {
  fi_cntr_attr attributes{};
  fid_cntr* other = nullptr;
  attributes.wait_obj = FI_WAIT_UNSPEC;
  ASSERT_EQ(fi_cntr_open(domain, &attributes, &other, nullptr), 0);
  EXPECT_EQ(fi_close(&other->fid), 0);
  attributes.wait_obj = FI_WAIT_MUTEX_COND;
  EXPECT_EQ(fi_cntr_open(domain, &attributes, &other, nullptr), -FI_ENOSYS);
  attributes = {};
  attributes.events = static_cast<fi_cntr_events>(1);  // bytes, of newer libfabrics
  EXPECT_EQ(fi_cntr_open(domain, &attributes, &other, nullptr), -FI_ENOSYS);
}

}  // namespace
}  // namespace cluster::api::test
