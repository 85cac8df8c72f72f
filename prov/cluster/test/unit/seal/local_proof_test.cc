// Which claims the two sides of a connection inside a node accept from each other.
#include "seal/local_proof.h"

#include <gtest/gtest.h>

#include "support/fake_environment.h"
#include "support/seal_keys.h"

namespace cluster::seal {
namespace {

class LocalProofTest : public ::testing::Test {
 protected:
  LocalProof side(const std::shared_ptr<const JobKey>& key, std::string_view name = "kind/name") {
    return LocalProof(key, name, random_);
  }
  static ConstBytes bytes(std::string_view text) { return as_bytes(text.data(), text.size()); }

  const std::shared_ptr<const JobKey> key_ = test::credentials({"the key of this job"}).keys.front();
  const std::shared_ptr<const JobKey> other_key_ = test::credentials({"the key of another"}).keys.front();
  test::FakeRandom random_{1};
  ProofAnswer answer_;
  Tag tag_;
};

TEST_F(LocalProofTest, TwoSidesWithTheKeyBelieveEachOther) {
  LocalProof connector = side(key_);
  LocalProof listener = side(key_);
  ASSERT_TRUE(listener.answer(connector.request(), answer_));
  EXPECT_TRUE(connector.verify_answer(answer_));
  tag_ = connector.sign(bytes("hello"));
  EXPECT_TRUE(listener.verify(bytes("hello"), tag_));
  EXPECT_FALSE(listener.verify(bytes("hallo"), tag_));
}

TEST_F(LocalProofTest, AnotherKeyIsBelievedNothing) {
  LocalProof connector = side(key_);
  LocalProof listener = side(other_key_);
  ASSERT_TRUE(listener.answer(connector.request(), answer_));
  EXPECT_FALSE(connector.verify_answer(answer_));
  tag_ = connector.sign(bytes("hello"));
  EXPECT_FALSE(listener.verify(bytes("hello"), tag_));
}

/// A listener that has taken the name of another brings the request to a third.
TEST_F(LocalProofTest, AnAnswerIsThatOfTheListenerThatWasCalled) {
  LocalProof connector = side(key_, "kind/one");
  LocalProof listener = side(key_, "kind/other");
  ASSERT_TRUE(listener.answer(connector.request(), answer_));
  EXPECT_FALSE(connector.verify_answer(answer_));
}

TEST_F(LocalProofTest, WhatWasRecordedIsWorthNothing) {
  LocalProof connector = side(key_);
  LocalProof listener = side(key_);
  ASSERT_TRUE(listener.answer(connector.request(), answer_));
  ASSERT_TRUE(connector.verify_answer(answer_));
  tag_ = connector.sign(bytes("hello"));
  LocalProof next_connector = side(key_);
  EXPECT_FALSE(next_connector.verify_answer(answer_));
  LocalProof next_listener = side(key_);
  ProofAnswer next_answer;
  ASSERT_TRUE(next_listener.answer(connector.request(), next_answer));
  EXPECT_FALSE(next_listener.verify(bytes("hello"), tag_));
}

TEST_F(LocalProofTest, AListenersTagIsNoConnectors) {
  LocalProof connector = side(key_);
  LocalProof listener = side(key_);
  ASSERT_TRUE(listener.answer(connector.request(), answer_));
  EXPECT_FALSE(listener.verify({}, answer_.tag));
}

TEST_F(LocalProofTest, SomethingElseIsNoRequest) {
  LocalProof listener = side(key_);
  ProofRequest request;
  request.magic ^= 1;
  EXPECT_FALSE(listener.answer(request, answer_));
}

TEST_F(LocalProofTest, ASocketsNameFollowsFromKeyAndNameAndShowsNeither) {
  const std::string name = hidden_socket_name(*key_, "cluster-3/10.0.0.1:7");
  EXPECT_EQ(name, hidden_socket_name(*key_, "cluster-3/10.0.0.1:7"));
  EXPECT_NE(name, hidden_socket_name(*key_, "cluster-3/10.0.0.1:8"));
  EXPECT_NE(name, hidden_socket_name(*other_key_, "cluster-3/10.0.0.1:7"));
  EXPECT_EQ(name.find("cluster-3/"), 0u);
  EXPECT_EQ(name.find("10.0"), std::string::npos);
  EXPECT_EQ(name.size(), std::string("cluster-3/").size() + 32);
}

}  // namespace
}  // namespace cluster::seal
