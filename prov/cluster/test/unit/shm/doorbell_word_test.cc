#include "shm/doorbell_word.h"

#include <gtest/gtest.h>

namespace cluster::shm {
namespace {

TEST(DoorbellWord, KnocksOncePerQuestion) {
  std::uint32_t word = 0;
  DoorbellWord sleeper(word);
  DoorbellWord writer(word);
  EXPECT_FALSE(writer.take_if_requested());
  sleeper.announce_fence();
  EXPECT_FALSE(writer.take_if_requested());
  EXPECT_TRUE(sleeper.request_doorbell());
  EXPECT_FALSE(sleeper.request_doorbell()) << "asked already: no fence is due";
  EXPECT_TRUE(writer.take_if_requested());
  EXPECT_FALSE(writer.take_if_requested());
  EXPECT_TRUE(sleeper.request_doorbell());
  EXPECT_TRUE(writer.take_if_requested());
}

TEST(DoorbellWord, WorksWithoutAnIntroduction) {
  std::uint32_t word = 0;
  DoorbellWord sleeper(word);
  DoorbellWord writer(word);
  EXPECT_TRUE(sleeper.request_doorbell());
  EXPECT_TRUE(writer.take_if_requested());
  EXPECT_FALSE(writer.take_if_requested());
}

}  // namespace
}  // namespace cluster::shm
