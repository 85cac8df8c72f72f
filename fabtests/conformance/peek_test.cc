// Looking for a message without receiving it: FI_PEEK, FI_CLAIM, FI_DISCARD as fi_tagged(3) and the
// matched probes of MPI need them. The result of a peek is reported by the completion queue.
#include "fabric.h"

namespace conformance {
namespace {

struct Search {
  Endpoint& e;
  fi_addr_t from = FI_ADDR_UNSPEC;

  ssize_t ask(std::uint64_t tag, std::uint64_t flags, void* context, iovec* piece = nullptr) {
    const fi_msg_tagged message{piece, nullptr, piece != nullptr ? 1u : 0u, from, tag, 0, context, 0};
    return fi_trecvmsg(e.ep(), &message, flags | FI_COMPLETION);
  }
  /// Peeks until the message is there.
  std::optional<Outcome> until_found(std::uint64_t tag, std::uint64_t flags, void* context) {
    const Deadline deadline(std::chrono::seconds(20));
    while (!deadline.passed()) {
      EXPECT_EQ(ask(tag, flags, context), 0);
      const auto outcome = e.await(context);
      if (!outcome) break;
      if (!outcome->error) return outcome;
      EXPECT_EQ(outcome->failure.err, FI_ENOMSG);
    }
    ADD_FAILURE() << "never found a message with tag " << tag;
    return std::nullopt;
  }
  void expect_nothing(std::uint64_t tag) {
    int context = 0;
    EXPECT_EQ(ask(tag, FI_PEEK, &context), 0);
    const Outcome outcome = e.fail(&context, FI_ENOMSG);
    EXPECT_EQ(outcome.failure.op_context, &context);
  }
};

SINGLE_TEST(Peek, SaysInTheQueueThatThereIsNothing) {
  Endpoint e;
  Search{e}.expect_nothing(1);
  EXPECT_TRUE(e.silent(std::chrono::milliseconds(10)));
}

void with_messages(Side& side, const std::vector<std::size_t>& sizes,
                   const std::function<void(Team&, Search)>& body) {
  Team team(side);
  Endpoint& e = team.endpoint;
  if (!side.first()) return body(team, Search{e});
  std::vector<std::vector<unsigned char>> data;
  std::vector<int> contexts(sizes.size());
  for (std::size_t i = 0; i < sizes.size(); ++i) data.push_back(pattern(sizes[i], i));
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    e.must([&] {
      return fi_tsenddata(e.ep(), data[i].data(), sizes[i], nullptr, 40 + i, team.peer(), i, &contexts[i]);
    });
  }
  for (int& context : contexts) e.finish(&context);
}

const std::vector<std::size_t> kPeekSizes = {0, 8, 1000, 30000, 2000000};

PAIR_TEST(Peek, ReportsLengthTagDataAndSourceAndTakesNothing) {
  with_messages(side, kPeekSizes, [](Team& team, Search search) {
    int context = 0;
    for (std::size_t i = 0; i < kPeekSizes.size(); ++i) {
      for (int twice = 0; twice < 2; ++twice) {
        const auto found = search.until_found(i, FI_PEEK, &context);
        ASSERT_TRUE(found.has_value());
        EXPECT_EQ(found->entry.len, kPeekSizes[i]);
        EXPECT_EQ(found->entry.tag, i);
        EXPECT_EQ(found->entry.data, 40 + i);
        EXPECT_EQ(found->source, team.peer());
      }
      search.from = team.peer();
    }
    search.expect_nothing(99);
    for (std::size_t i = 0; i < kPeekSizes.size(); ++i) {
      std::vector<unsigned char> buffer(kPeekSizes[i]);
      Endpoint& e = team.endpoint;
      e.must([&] {
        return fi_trecv(e.ep(), buffer.data(), kPeekSizes[i], nullptr, team.peer(), i, 0, &context);
      });
      e.finish(&context);
      EXPECT_TRUE(has_pattern(buffer, i));
    }
  });
}

PAIR_TEST(Peek, AClaimedMessageBelongsToItsContext) {
  with_messages(side, kPeekSizes, [](Team& team, Search search) {
    Endpoint& e = team.endpoint;
    int contexts[5];
    for (std::size_t i = 0; i < kPeekSizes.size(); ++i) {
      ASSERT_TRUE(search.until_found(i, FI_PEEK | FI_CLAIM, &contexts[i]).has_value());
      search.expect_nothing(i);  // it is found once
    }
    for (std::size_t i = kPeekSizes.size(); i-- > 0;) {
      std::vector<unsigned char> buffer(kPeekSizes[i]);
      iovec piece{buffer.data(), buffer.size()};
      search.from = 0;  // a claim goes by context, not by address
      EXPECT_EQ(search.ask(i, FI_CLAIM, &contexts[i], &piece), 0);
      const Outcome outcome = e.finish(&contexts[i]);
      EXPECT_EQ(outcome.entry.len, kPeekSizes[i]);
      EXPECT_TRUE(has_pattern(buffer, i));
    }
    static_cast<void>(team);
  });
}

PAIR_TEST(Peek, DiscardThrowsAwayAndTheSenderIsContent) {
  with_messages(side, kPeekSizes, [](Team&, Search search) {
    int context = 0;
    for (std::size_t i = 0; i < kPeekSizes.size(); ++i) {
      if (i % 2 == 0) {
        EXPECT_TRUE(search.until_found(i, FI_PEEK | FI_DISCARD, &context).has_value());
      } else {
        ASSERT_TRUE(search.until_found(i, FI_PEEK | FI_CLAIM, &context).has_value());
        EXPECT_EQ(search.ask(i, FI_CLAIM | FI_DISCARD, &context), 0);
        search.e.finish(&context);
      }
      search.expect_nothing(i);
    }
  });
}

}  // namespace
}  // namespace conformance
