#include <gtest/gtest.h>

#include "os/packet_ring.h"

namespace cluster::os {
namespace {

TEST(KernelRelease, IsComparedByItsNumbers) {
  for (const char* const later :
       {"6.2", "6.2.0", "6.2.0-39-generic", "6.10.3", "6.18.44-fc-v595", "10.0.1", "6.2-rc1"})
    EXPECT_TRUE(release_at_least(later, 6, 2)) << later;
  for (const char* const earlier :
       {"6.1.0-13-amd64", "6.0", "5.19.17", "5.4.0-1045-aws", "4.18.0-553.el8.x86_64", "3.10"})
    EXPECT_FALSE(release_at_least(earlier, 6, 2)) << earlier;
}

TEST(KernelRelease, NothingIsKnownOfWhatIsNone) {
  for (const char* const none : {"", "6", "6.", "x.y", "-6.2", ".7", "7-2"})
    EXPECT_FALSE(release_at_least(none, 6, 2)) << none;
}

TEST(KernelRelease, ThisOneHasSome) {
  EXPECT_TRUE(kernel_at_least(1, 0));
  EXPECT_FALSE(kernel_at_least(1000, 0));
}

}  // namespace
}  // namespace cluster::os
