// Which parts of a session's identity others cannot guess.
#include "network/session_secrets.h"

#include <gtest/gtest.h>

#include "support/node.h"

namespace cluster::network {
namespace {

using test::kA;
using test::kB;

TEST(SessionSecrets, ATokenIsForOneSessionAndName) {
  const SessionSecrets secrets(SipHash{1, 2});
  const std::uint64_t token = secrets.token_of(7, kA);
  EXPECT_EQ(secrets.token_of(7, kA), token);
  EXPECT_NE(secrets.token_of(8, kA), token);
  EXPECT_NE(secrets.token_of(7, kB), token)
      << "else one host could collect tokens for the sessions of another";
  EXPECT_NE(secrets.token_of(7, kA.with_port(9)), token);
  EXPECT_NE(SessionSecrets(SipHash{1, 3}).token_of(7, kA), token);
}

TEST(SessionSecrets, MembersAndOthersHaveDifferentMarksAndNoNumberIsZero) {
  for (std::uint64_t key = 0; key < 2000; ++key) {
    const SessionSecrets secrets(SipHash{key, 2});
    EXPECT_NE(secrets.member_mark(), 0);
    EXPECT_NE(secrets.other_mark(), 0);
    EXPECT_NE(secrets.member_mark(), secrets.other_mark());
    EXPECT_NE(secrets.incarnation(), 0);
  }
  EXPECT_EQ(SessionSecrets::with_mark(0x12345678, 0x9A), 0x1234569Au);
}

}  // namespace
}  // namespace cluster::network
