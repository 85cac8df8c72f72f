#include "shm/doorbell_word.h"

#include <gtest/gtest.h>

namespace cluster::shm {
namespace {

TEST(DoorbellWord, RingsOncePerRequest) {
  std::uint32_t word = 0;
  DoorbellWord sleeper(word);
  DoorbellWord writer(word);
  EXPECT_FALSE(writer.take_request());
  sleeper.announce_fence();
  EXPECT_FALSE(writer.take_request());
  EXPECT_TRUE(sleeper.request());
  EXPECT_FALSE(sleeper.request()) << "asked already: no fence is due";
  EXPECT_TRUE(writer.take_request());
  EXPECT_FALSE(writer.take_request());
  EXPECT_TRUE(sleeper.request());
  EXPECT_TRUE(writer.take_request());
}

TEST(DoorbellWord, WorksWithoutAnAnnouncedFence) {
  std::uint32_t word = 0;
  DoorbellWord sleeper(word);
  DoorbellWord writer(word);
  EXPECT_TRUE(sleeper.request());
  EXPECT_TRUE(writer.take_request());
  EXPECT_FALSE(writer.take_request());
}

}  // namespace
}  // namespace cluster::shm
