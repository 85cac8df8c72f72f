// The paths of one flow (docs/protocol.md 4.8). Path 0 is the way of first contact; the others are added once
// the peer has said under which addresses it can be reached, and used once a trial has been answered.
//
// The flow asks which rail is next, and tells what went out on it and what the peer said. With one rail this
// is nothing but that rail: none of the rules below has anything to choose.
//
// Invariants: there is always a rail; rails are never removed, nor moved (frames on their way out refer to
// their paths). What travels on a rail that has failed is lost at once, so no frame waits for a rail.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/environment.h"
#include "base/status.h"
#include "multipath/address_pairing.h"
#include "multipath/path_state.h"
#include "multipath/path_stats.h"
#include "reliability/send_window.h"

namespace cluster::multipath {

class PathManager {
 public:
  /// `own` are this side's interfaces by number of link; empty: one, of which nothing is known.
  PathManager(std::span<const multipath::Rail> own, const link::Path& first, std::size_t window_max,
              Log& log);

  std::size_t size() const { return rails_.size(); }
  PathState& operator[](std::size_t number) { return *rails_[number]; }
  const PathState& operator[](std::size_t number) const { return *rails_[number]; }

  // --- which there are ---
  /// No answer yet to what was sent on rail 0: the next time by another interface.
  void try_next_rail();
  /// The peer's addresses are known: further rails. Takes effect once.
  void join(std::span<const SocketAddress> peer);
  /// A genuine frame came this way: what it tells about the way back. `owed`: it is to be acknowledged.
  void learn(const link::Path& from, bool owed);
  /// For what answers the last arrival: by the way that came, so that the answer to a repair takes the long
  /// one.
  const link::Path& reply() {
    return answers_by_shortcut_ ? rails_[reply_]->lone_frame_path() : rails_[reply_]->path;
  }
  /// What sets out for the peer in this turn is hardly answered sooner.
  Duration min_reply_delay() const { return 2 * rails_[reply_]->round_trip.smoothed(); }
  /// True while the peer's frames come over several rails: gaps mean nothing then.
  bool reordering_expected() const { return since_switch_ < kSinglePathArrivals; }

  // --- what goes out ---
  struct Turn {
    std::size_t rail = 0;
    std::size_t frames = 0;
  };
  void turn_begins();
  /// The rail that delivers next and how many frames may leave on it now.
  Turn next(Time now, const reliability::SendWindow& frames);
  /// For a frame that got no answer on its rail: another one, if there is any.
  Turn select_other(Time now, std::size_t rail, const reliability::SendWindow& frames);
  void sent(Time now, std::size_t rail, Sequence transmission, Sequence sequence,
            const reliability::SendWindow& frames);
  /// Frames that may be under way on all that work.
  std::size_t window() const;
  /// When the pace of some rail allows more.
  Time resume(Time now) const;
  /// The next rail to be asked whether it works, if one is due; asked() when it has been.
  std::optional<std::size_t> path_to_challenge(Time now) const;
  link::Path challenge_path(std::size_t rail) const;
  void asked(Time now, std::size_t rail);
  /// The next rail whose shortcut is to be asked for; ethertype_challenged() when it has been.
  std::optional<std::size_t> ethertype_to_challenge(Time now) const;
  void ethertype_challenged(Time now, std::size_t rail) { rails_[rail]->ethertype.on_challenge_sent(now); }
  /// Something did not come through, or was not answered: by which way nobody knows.
  void suspect_ethertype_paths(Time now);
  /// For what is said several times: another rail each time.
  const link::Path& next_validated();

  // --- what the peer says ---
  struct Word {
    Sequence newest;                ///< latest transmission that has arrived
    Sequence known_end;             ///< it covers the frames before this one
    Sequence next;                  ///< number of the next transmission
    Time arrived;                   ///< at this node, perhaps long before it was read
    std::optional<Duration> delay;  ///< between the arrival of newest and the word, unless unknown
    std::size_t spurious = 0;       ///< repairs, since the last word
  };
  void word_begins(const reliability::SendWindow& frames);
  void arrived(Sequence sequence, const reliability::Flight& flight);
  void word_ends(Time now, const Word& word);
  /// A question was answered. A responder's word counts only where the peer has been met before: anybody has
  /// one.
  void answered(Time now, const link::Path& from, bool by_engine);
  /// The addresses at which the peer's engine has answered.
  std::span<const SocketAddress> validated_addresses() const { return validated_addresses_; }
  /// The network complains about the way to the peer. True if that is one rail's trouble, not the peer's.
  bool complaint(Time now, const link::PathError& complaint);

  // --- what time brings ---
  /// Marks what is lost by now, returns how many.
  std::size_t detect(Time now, reliability::SendWindow& frames);
  Time deadline() const;
  /// Silence lasts: of whatever travels nothing is known.
  void timed_out(const reliability::SendWindow& frames);
  /// A frame has waited in vain on this rail, and now goes again.
  void strike(Time now, const reliability::Flight& flight);
  /// What says how long silence may last: of the slowest rail on which something travels.
  const RttEstimator& reply_time(const reliability::SendWindow& frames) const;
  bool remember(Sequence transmission, Sequence sequence) const;

  // --- for whoever asks ---
  std::vector<PathStats> state(const reliability::SendWindow& frames) const;
  /// Bytes of memory they hold.
  std::size_t footprint() const;

 private:
  std::optional<std::size_t> find(const link::Path& from) const;
  void answer_by(std::size_t rail);
  void take_word(Time now, const Word& word, PathState& rail, bool overtaken);
  void sample(Time now, PathState& rail, Duration reply, std::optional<Duration> round_trip);
  void compare(Time now);
  std::size_t fail(Time now, PathState& rail, reliability::SendWindow& frames);
  void tell(const PathState& rail, PathValidator::Event event) const;
  std::size_t least_recent(std::size_t except) const;

  static constexpr std::size_t kGrantMax = 8;  ///< to one rail at once, where there are several
  static constexpr unsigned kPairedChallenges =
      4;  ///< questions that go to the address a rail was paired with, at first
  static constexpr unsigned kSinglePathArrivals = 64;

  std::span<const multipath::Rail> own_;
  std::size_t window_max_;
  Log& log_;
  std::vector<std::unique_ptr<PathState>> rails_;
  std::vector<SocketAddress> peer_;  ///< where the peer may be reached, once it has said so
  std::vector<SocketAddress> validated_addresses_;
  bool joined_ = false;
  std::size_t reply_ = 0;
  bool answers_by_shortcut_ = false;
  std::size_t turn_ = 0;
  std::uint8_t tried_ = 0;  ///< of the links that are not of the peer's network, the last tried
  std::size_t tries_ = 0;
  unsigned since_switch_ =
      kSinglePathArrivals;  ///< arrivals since one came over another rail than that before it
  bool any_word_ = false;
  Sequence newest_word_;
};

}  // namespace cluster::multipath
