// What a member records about arrivals for the caller that delivers them.
#include "group/member.h"

#include <gtest/gtest.h>

#include "support/fake_environment.h"

namespace cluster::group {
namespace {

class NewsTest : public testing::Test {
 protected:
  NewsTest() {
    news.reserve(2);
    for (Member* member : {&first, &second})
      member->stream = std::make_unique<ReceiverStream>(5, 0, random, pool);
  }
  void arrive(Member& member, std::uint64_t sequence) {
    const std::byte body[1]{};
    member.stream->receive(Time{1s},
                           {sequence, sequence + 1, body, false, ReceiverStream::Route::multicast, {}}, 3);
    news.note(member);
  }
  /// Those that are delivered; something is left of each that is in `full`.
  std::vector<Member*> deliver(const std::vector<Member*>& full = {}) {
    std::vector<Member*> seen;
    news.deliver([&](Member& member) {
      seen.push_back(&member);
      return std::find(full.begin(), full.end(), &member) != full.end();
    });
    return seen;
  }

  test::FakeRandom random;
  SpareBodies pool{1};
  Member first, second;
  News news;
};

TEST_F(NewsTest, AMemberIsDeliveredOnceHoweverOftenItWasNoted) {
  EXPECT_FALSE(news.any());
  arrive(second, 0);
  arrive(first, 0);
  arrive(second, 1);
  EXPECT_TRUE(news.any());
  EXPECT_EQ(deliver(), (std::vector<Member*>{&second, &first}));
  EXPECT_FALSE(news.any());
  EXPECT_TRUE(deliver().empty());
}

TEST_F(NewsTest, WhatLiesBehindAGapIsNoNews) {
  arrive(first, 1);
  EXPECT_FALSE(news.any());
  arrive(first, 0);
  EXPECT_TRUE(news.any());
}

TEST_F(NewsTest, OneOfWhichSomethingIsLeftStaysNews) {
  arrive(first, 0);
  arrive(second, 0);
  deliver({&second});
  EXPECT_TRUE(news.any());
  EXPECT_EQ(deliver(), (std::vector<Member*>{&second}));
  EXPECT_FALSE(news.any());
}

TEST_F(NewsTest, AMemberThatEndsIsForgotten) {
  arrive(first, 0);
  arrive(second, 0);
  news.forget(first);
  EXPECT_EQ(deliver(), (std::vector<Member*>{&second}));
}

TEST_F(NewsTest, EndsAreReportedOnce) {
  EXPECT_FALSE(news.take_ends());
  news.note_end();
  EXPECT_TRUE(news.take_ends());
  EXPECT_FALSE(news.take_ends());
}

}  // namespace
}  // namespace cluster::group
