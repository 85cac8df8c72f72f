// The judge of remote memory complains of each thing it is there for.
#include "sim/remote_oracle.h"

#include <gtest/gtest.h>

#include <cstring>

namespace cluster::sim {
namespace {

class RemoteOracleTest : public testing::Test {
 protected:
  RemoteOracleTest() : lives(2), oracle(lives) {
    lives.begins(0, Time{}, false);
    lives.begins(1, Time{}, false);
    exposure = &oracle.expose({.host = 1,
                               .life = 1,
                               .key = 5,
                               .start = 0,
                               .reading = 1000,
                               .writing = 5000,
                               .readable = true,
                               .writable = true});
    region = exposure->region();
  }

  /// A write of 100 bytes from 0 to 1 that was taken.
  MessageNumber write(bool has_data = false) {
    RemoteOperation shape;
    shape.to = 1;
    shape.ranges.push_back({exposure, *exposure->claim(100, dice), 100});
    shape.length = 100;
    shape.has_data = has_data;
    const MessageNumber number = oracle.compose(std::move(shape)).number;
    oracle.accepted(number);
    return number;
  }
  std::byte* target(MessageNumber number) { return region.base + oracle.operation(number).ranges[0].offset; }
  void land(MessageNumber number) { fill_content(kRemoteContent | number, {target(number), 100}); }
  protocol::Completion outcome(Fault fault = Fault::none) {
    protocol::Completion completion;
    completion.kind = protocol::Completion::Kind::write;
    completion.fault = fault;
    return completion;
  }
  void end(MessageNumber number, Fault fault = Fault::none) { oracle.ended(outcome(fault), number, {}); }

  Lives lives;
  RemoteOracle oracle;
  Dice dice{1};
  Exposure* exposure;
  protocol::Region region;
};

TEST_F(RemoteOracleTest, AnHonestRunIsFine) {
  const MessageNumber number = write();
  land(number);
  end(number);
  oracle.check_complete();
}

TEST_F(RemoteOracleTest, CompleteBeforeTheBytesAreThere) {
  const MessageNumber number = write();
  EXPECT_THROW(end(number), SafetyFailure);
}

TEST_F(RemoteOracleTest, WrittenTwice) {
  const MessageNumber number = write();
  land(number);
  end(number);
  land(number);
  EXPECT_THROW(oracle.check_complete(), SafetyFailure);
}

TEST_F(RemoteOracleTest, EndedTwice) {
  const MessageNumber number = write();
  land(number);
  end(number);
  EXPECT_THROW(end(number), SafetyFailure);
}

TEST_F(RemoteOracleTest, WrittenBesideItsPlace) {
  for (const std::ptrdiff_t at : {-1, 0, 999, 6000}) {
    std::byte& byte = region.base[at];
    byte ^= std::byte{1};
    EXPECT_THROW(oracle.check_complete(), SafetyFailure) << at;
    byte ^= std::byte{1};
  }
  oracle.check_complete();
}

TEST_F(RemoteOracleTest, FailedWithoutCause) {
  EXPECT_THROW(end(write(), Fault::access), SafetyFailure);
  EXPECT_THROW(end(write(), Fault::reset), SafetyFailure);
}

TEST_F(RemoteOracleTest, WrittenAfterItWasClosed) {
  const MessageNumber number = write();
  oracle.close(*exposure);
  end(number, Fault::access);
  oracle.check_complete();
  land(number);
  EXPECT_THROW(oracle.check_complete(), SafetyFailure);
}

TEST_F(RemoteOracleTest, DataBeforeTheBytesOrTwice) {
  protocol::Completion told;
  const MessageNumber number = told.data = write(true);
  EXPECT_THROW(oracle.data_came(1, 1, told), SafetyFailure);
  const MessageNumber other = told.data = write(true);
  land(other);
  oracle.data_came(1, 1, told);
  EXPECT_THROW(oracle.data_came(1, 1, told), SafetyFailure);
  EXPECT_NE(number, other);
}

TEST_F(RemoteOracleTest, OvertakenByAMessage) {
  const MessageNumber number = write();
  Message message;
  message.from = 0;
  message.to = 1;
  message.from_life = 1;
  EXPECT_THROW(oracle.message_came(message, 1), SafetyFailure);
  land(number);
  oracle.message_came(message, 1);
}

TEST_F(RemoteOracleTest, AForbiddenAccessThatSucceeds) {
  RemoteOperation shape;
  shape.to = 1;
  shape.ranges.push_back({exposure, 0, 10});
  shape.length = 10;
  shape.forbidden = true;
  const MessageNumber number = oracle.compose(std::move(shape)).number;
  oracle.accepted(number);
  EXPECT_THROW(end(number), SafetyFailure);
}

TEST_F(RemoteOracleTest, NeverEnded) {
  land(write());
  EXPECT_THROW(oracle.check_complete(), LivenessFailure);
}

}  // namespace
}  // namespace cluster::sim
