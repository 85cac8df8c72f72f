// The oracle of remote memory reports each failure that it must detect.
#include "sim/rma_oracle.h"

#include <gtest/gtest.h>

#include <cstring>

namespace cluster::sim {
namespace {

class RmaOracleTest : public testing::Test {
 protected:
  RmaOracleTest() : incarnations(2), oracle(incarnations) {
    incarnations.begins(0, Time{}, false);
    incarnations.begins(1, Time{}, false);
    region_watch = &oracle.register_region({.host = 1,
                                            .incarnation = 1,
                                            .key = 5,
                                            .start = 0,
                                            .reading = 1000,
                                            .writing = 5000,
                                            .readable = true,
                                            .writable = true});
    region = region_watch->region();
  }

  /// Orders a write of 100 bytes from host 0 to host 1, which the engine accepts.
  MessageNumber write(bool has_data = false) {
    RmaOperation shape;
    shape.to = 1;
    shape.ranges.push_back({region_watch, *region_watch->allocate_slot(100, random), 100});
    shape.length = 100;
    shape.has_data = has_data;
    const MessageNumber number = oracle.compose(std::move(shape)).number;
    oracle.accepted(number);
    return number;
  }
  std::byte* target(MessageNumber number) { return region.base + oracle.operation(number).ranges[0].offset; }
  void land(MessageNumber number) { fill_content(kRemoteContent | number, {target(number), 100}); }
  protocol::Completion outcome(Status status = Status::ok) {
    protocol::Completion completion;
    completion.kind = protocol::Completion::Kind::write;
    completion.status = status;
    return completion;
  }
  void end(MessageNumber number, Status status = Status::ok) { oracle.ended(outcome(status), number, {}); }

  Incarnations incarnations;
  RmaOracle oracle;
  SeededRandom random{1};
  WatchedRegion* region_watch;
  protocol::MemoryRegion region;
};

TEST_F(RmaOracleTest, ACorrectRunPasses) {
  const MessageNumber number = write();
  land(number);
  end(number);
  oracle.check_complete();
}

TEST_F(RmaOracleTest, CompleteBeforeTheBytesAreThere) {
  const MessageNumber number = write();
  EXPECT_THROW(end(number), SafetyFailure);
}

TEST_F(RmaOracleTest, WrittenTwice) {
  const MessageNumber number = write();
  land(number);
  end(number);
  land(number);
  EXPECT_THROW(oracle.check_complete(), SafetyFailure);
}

TEST_F(RmaOracleTest, EndedTwice) {
  const MessageNumber number = write();
  land(number);
  end(number);
  EXPECT_THROW(end(number), SafetyFailure);
}

TEST_F(RmaOracleTest, WrittenBesideItsPlace) {
  for (const std::ptrdiff_t at : {-1, 0, 999, 6000}) {
    std::byte& byte = region.base[at];
    byte ^= std::byte{1};
    EXPECT_THROW(oracle.check_complete(), SafetyFailure) << at;
    byte ^= std::byte{1};
  }
  oracle.check_complete();
}

TEST_F(RmaOracleTest, FailedWithoutCause) {
  EXPECT_THROW(end(write(), Status::access), SafetyFailure);
  EXPECT_THROW(end(write(), Status::reset), SafetyFailure);
}

TEST_F(RmaOracleTest, WrittenAfterItWasClosed) {
  const MessageNumber number = write();
  oracle.close(*region_watch);
  end(number, Status::access);
  oracle.check_complete();
  land(number);
  EXPECT_THROW(oracle.check_complete(), SafetyFailure);
}

TEST_F(RmaOracleTest, DataBeforeTheBytesOrTwice) {
  protocol::Completion completion;
  const MessageNumber number = completion.data = write(true);
  EXPECT_THROW(oracle.data_came(1, 1, completion), SafetyFailure);
  const MessageNumber other = completion.data = write(true);
  land(other);
  oracle.data_came(1, 1, completion);
  EXPECT_THROW(oracle.data_came(1, 1, completion), SafetyFailure);
  EXPECT_NE(number, other);
}

TEST_F(RmaOracleTest, OvertakenByAMessage) {
  const MessageNumber number = write();
  Message message;
  message.from = 0;
  message.to = 1;
  message.from_incarnation = 1;
  EXPECT_THROW(oracle.message_came(message, 1), SafetyFailure);
  land(number);
  oracle.message_came(message, 1);
}

TEST_F(RmaOracleTest, AForbiddenAccessThatSucceeds) {
  RmaOperation shape;
  shape.to = 1;
  shape.ranges.push_back({region_watch, 0, 10});
  shape.length = 10;
  shape.forbidden = true;
  const MessageNumber number = oracle.compose(std::move(shape)).number;
  oracle.accepted(number);
  EXPECT_THROW(end(number), SafetyFailure);
}

TEST_F(RmaOracleTest, NeverEnded) {
  land(write());
  EXPECT_THROW(oracle.check_complete(), LivenessFailure);
}

}  // namespace
}  // namespace cluster::sim
