// The ways to one peer, and which of them its frames take. Way 0 leads directly to the address of the peer.
// Each other way leads through a relay. The direct way is used if it works, otherwise the relay with the
// shortest round trip.
//
// A way works if the peer's process answers questions on it. A question is a keep-alive of the seal
// (seal/keep_alive_seal.h), so nobody but the peer can answer, and the peer answers even while its
// application computes. The questions of the ways differ. So an answer shows that both directions of its way
// work, and how long they take.
//
// Questions are asked in rounds. A round begins when frames leave for the peer and the last round is old
// enough, so nothing is sent to an idle peer. While all is well, only the way in use and the direct way are
// asked. The round after an unanswered one also asks all other ways. A way fails if two of its
// questions in a row remain unanswered.
//
// This object only counts and chooses. Its owner sends the questions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/units.h"

namespace cluster::relay {

class Ways {
 public:
  static constexpr std::size_t kDirect = 0;
  /// Time until the next round if the way in use has answered.
  static constexpr Duration kCheckDirect = 500ms;
  static constexpr Duration kCheckRelay = 250ms;
  /// Time until the next round if it has not. With a longer round trip, it is twice the round trip.
  static constexpr Duration kRetry = 100ms;
  /// After this many rounds without any answer, there is only one round in each kRest.
  static constexpr unsigned kQuickRounds = 20;
  static constexpr Duration kRest = 1s;

  explicit Ways(std::size_t relays) : ways_(1 + relays) {}

  std::size_t size() const { return ways_.size(); }
  /// Returns the way in use.
  std::size_t used() const { return used_; }
  bool works(std::size_t way) const { return ways_[way].missed < kMissedMax; }
  /// Returns true while the way in use has not answered the last round.
  bool waits() const { return ways_[used_].last().number != 0; }
  /// Returns how many rounds in a row have had no answer at all.
  unsigned vain_rounds() const { return vain_rounds_; }
  Duration round_trip(std::size_t way) const { return ways_[way].round_trip; }

  bool round_due(Time now) const { return now >= next_round_; }
  /// Begins a round. Afterwards, the owner asks on each way for which asks() returns true. Returns true if
  /// another way is in use now.
  bool begin_round(Time now);
  bool asks(std::size_t way) const {
    return way == kDirect || used_ != kDirect || (vain_rounds_ > 1 && ways_[kDirect].missed != 0);
  }
  void asked(Time now, std::size_t way, std::uint64_t question);

  /// Returns true if this question was asked on this way, and is unanswered.
  bool expects(std::size_t way, std::uint64_t question) const;
  /// A frame of the peer has come on this way. As long as the way in use does not work, frames to the peer
  /// take the same way. Anybody could have sent that frame, so it has no other effect.
  void heard(std::size_t way) {
    if (!works(used_)) used_ = way;
  }
  /// The peer has answered this question. Returns true if another way is in use now.
  bool on_answer(Time now, std::size_t way, std::uint64_t question);

 private:
  static constexpr unsigned kMissedMax = 2;
  /// A relay takes the place of another one if its round trip is shorter than this part of the other one's.
  static constexpr int kMuchShorter = 3, kOfParts = 4;

  struct Question {
    std::uint64_t number = 0;  ///< 0: none, or it is answered
    Time at{};
  };
  struct Way {
    std::array<Question, 8> questions;  ///< the last ones: an answer may take longer than a round
    std::size_t next = 0;
    unsigned missed = kMissedMax;  ///< how many questions in a row were unanswered
    Duration round_trip{};

    const Question& last() const { return questions[(next + questions.size() - 1) % questions.size()]; }
  };

  bool choose();
  std::size_t best_relay() const;

  std::vector<Way> ways_;
  std::size_t used_ = kDirect;
  unsigned vain_rounds_ = 0;
  Time next_round_{};
};

}  // namespace cluster::relay
