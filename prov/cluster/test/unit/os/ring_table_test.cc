// The places of a ring group: the number of a ring in the kernel is its place in the list, whatever happens.
#include "os/ring_table.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <utility>

#include "base/bytes.h"

namespace cluster::os {
namespace {

using State = RingPlace::State;
using Serials = std::vector<std::uint64_t>;

constexpr RingLayout kLayout{2048, 1};

SocketAddress port(std::uint16_t number) {
  const std::byte ip[4] = {std::byte{10}, std::byte{0}, std::byte{0}, std::byte{1}};
  return SocketAddress::v4(ip, number);
}

class RingPlaces : public ::testing::Test {
 protected:
  RingPlace& reserve(std::uint64_t serial, std::uint32_t owner) {
    return list_->reserve(serial, owner, port(static_cast<std::uint16_t>(serial)), kLayout, 2);
  }
  void enter(std::uint64_t serial, std::uint32_t owner) { reserve(serial, owner).state = State::entered; }
  static RingList::Alive all_but(std::set<std::uint32_t> dead) {
    return [dead = std::move(dead)](std::uint32_t owner) { return dead.count(owner) == 0; };
  }
  Serials trimmed() {
    const Serials serials = list_->trim();
    EXPECT_EQ(list_->trim(), serials) << "until they are erased";
    for (const std::uint64_t serial : serials) list_->erase(serial);
    return serials;
  }
  /// The port and the number of each target.
  std::vector<std::pair<int, std::uint32_t>> targets() const {
    std::vector<std::pair<int, std::uint32_t>> all;
    for (const RingTarget& target : list_->targets()) all.emplace_back(target.address.port(), target.index);
    return all;
  }

  std::unique_ptr<RingList> list_ = std::make_unique<RingList>();
};

using Targets = std::vector<std::pair<int, std::uint32_t>>;

TEST_F(RingPlaces, TheDeathOfAMemberMovesNobody) {
  for (std::uint64_t i = 1; i <= 4; ++i) enter(i, static_cast<std::uint32_t>(10 + i));
  EXPECT_EQ(list_->free_dead(all_but({12})), Serials()) << "its socket stays";
  EXPECT_EQ(targets(), (Targets{{1, 0}, {3, 2}, {4, 3}}));
  EXPECT_EQ(list_->size(), 4u);
  EXPECT_EQ(list_->owned(), 3u);
  EXPECT_EQ(list_->blocks(), 8u);
}

TEST_F(RingPlaces, AFreePlaceIsTakenOverByOneOfTheSameLayout) {
  enter(1, 11);
  enter(2, 12);
  EXPECT_EQ(list_->find_free(kLayout), nullptr);
  list_->find(1)->owner = 0;
  ASSERT_NE(list_->find_free(kLayout), nullptr);
  EXPECT_EQ(list_->find_free(kLayout)->serial, 1u);
  EXPECT_EQ(list_->find_free({4096, 1}), nullptr);
  EXPECT_EQ(list_->find_free({2048, 0}), nullptr);
}

TEST_F(RingPlaces, OnlyTheEndIsTrimmed) {
  for (std::uint64_t i = 1; i <= 4; ++i) enter(i, static_cast<std::uint32_t>(10 + i));
  list_->find(2)->owner = 0;
  EXPECT_EQ(list_->trim(), Serials());
  list_->find(4)->owner = 0;
  EXPECT_EQ(trimmed(), Serials({4}));
  list_->find(3)->owner = 0;
  EXPECT_EQ(trimmed(), Serials({3, 2}));
  EXPECT_EQ(targets(), (Targets{{1, 0}}));
}

TEST_F(RingPlaces, PlacesEnterInTheOrderOfTheirReservation) {
  enter(1, 11);
  reserve(2, 12);
  reserve(3, 13);
  EXPECT_TRUE(list_->is_next(2));
  EXPECT_FALSE(list_->is_next(3));
  EXPECT_EQ(list_->entered(), 1u);
  EXPECT_EQ(targets(), (Targets{{1, 0}})) << "the others have no number yet";
  EXPECT_EQ(list_->find_free(kLayout), nullptr);
  list_->find(2)->state = State::entered;
  EXPECT_TRUE(list_->is_next(3));
  EXPECT_FALSE(list_->is_next(99));
}

TEST_F(RingPlaces, ThePlaceOfOneThatDiesBeforeItEntersGoesToTheNext) {
  enter(1, 11);
  reserve(2, 12);
  reserve(3, 13).state = State::entering;
  reserve(4, 14);
  EXPECT_EQ(list_->free_dead(all_but({12, 13})), Serials({2, 3}));
  EXPECT_EQ(list_->free_dead(all_but({})), Serials({2, 3})) << "until they are erased";
  list_->erase(2);
  list_->erase(3);
  EXPECT_TRUE(list_->is_next(4));
  list_->find(4)->state = State::entered;
  EXPECT_EQ(targets(), (Targets{{1, 0}, {4, 1}}));
}

TEST_F(RingPlaces, EveryChangeOfTheTargetsIsCounted) {
  enter(1, 11);
  const std::uint64_t before = list_->changes;
  list_->free_dead(all_but({}));
  EXPECT_EQ(list_->changes, before);
  list_->free_dead(all_but({11}));
  EXPECT_GT(list_->changes, before);
}

TEST_F(RingPlaces, AsManyAsTheKernelAllows) {
  for (std::uint64_t i = 1; i <= kRingsMax; ++i) enter(i, 1);
  EXPECT_EQ(list_->size(), kRingsMax);
  EXPECT_EQ(targets().back(), (std::pair<int, std::uint32_t>(kRingsMax, kRingsMax - 1)));
  list_->erase(kRingsMax);
  EXPECT_EQ(list_->find(kRingsMax), nullptr);
}

}  // namespace
}  // namespace cluster::os
