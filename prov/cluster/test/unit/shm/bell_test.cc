#include "shm/bell.h"

#include <gtest/gtest.h>

namespace cluster::shm {
namespace {

TEST(Bell, KnocksOncePerQuestion) {
  std::uint32_t word = 0;
  Bell sleeper(word);
  Bell writer(word);
  EXPECT_FALSE(writer.wanted());
  sleeper.introduce();
  EXPECT_FALSE(writer.wanted());
  EXPECT_TRUE(sleeper.ask());
  EXPECT_FALSE(sleeper.ask()) << "asked already: no fence is due";
  EXPECT_TRUE(writer.wanted());
  EXPECT_FALSE(writer.wanted());
  EXPECT_TRUE(sleeper.ask());
  EXPECT_TRUE(writer.wanted());
}

TEST(Bell, WorksWithoutAnIntroduction) {
  std::uint32_t word = 0;
  Bell sleeper(word);
  Bell writer(word);
  EXPECT_TRUE(sleeper.ask());
  EXPECT_TRUE(writer.wanted());
  EXPECT_FALSE(writer.wanted());
}

}  // namespace
}  // namespace cluster::shm
