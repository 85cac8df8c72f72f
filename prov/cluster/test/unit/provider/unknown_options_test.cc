// Variables that look like options and are none.
#include "provider/unknown_options.h"

#include <gtest/gtest.h>

namespace cluster::provider {
namespace {

TEST(UnknownOptions, AreNamedWithTheOptionThatIsSpelledLikeThem) {
  const char* const environment[] = {"HOME=/root", "FI_CLUSTER_LINK=udp", "FI_CLUSTER_PEER_TIMOUT=1",
                                     "FI_CLUSTER_COLOUR=red", nullptr};
  const std::vector<UnknownOption> unknown = unknown_options(environment);
  ASSERT_EQ(unknown.size(), 2u);
  EXPECT_EQ(unknown[0].name, "FI_CLUSTER_PEER_TIMOUT");
  EXPECT_EQ(unknown[0].line,
            "FI_CLUSTER_PEER_TIMOUT is set and has no effect: there is no such option (is "
            "FI_CLUSTER_PEER_TIMEOUT meant?)");
  EXPECT_EQ(
      unknown[1].line,
      "FI_CLUSTER_COLOUR is set and has no effect: there is no such option (cluster-info --host lists them)");
  EXPECT_TRUE(unknown_options(nullptr).empty());
}

TEST(UnknownOptions, SpellingDistance) {
  EXPECT_EQ(spelling_distance("cluster", "cluster"), 0u);
  EXPECT_EQ(spelling_distance("clutser", "cluster"), 2u);
  EXPECT_EQ(spelling_distance("", "abc"), 3u);
  EXPECT_EQ(spelling_distance("abcd", "acd"), 1u);
}

}  // namespace
}  // namespace cluster::provider
