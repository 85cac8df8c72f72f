// What a flow is made of. Its halves live in files of their own: flow_transmit.cc (down) and
// flow_receive.cc (up); flow.cc is the door.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "multipath/path_manager.h"
#include "multipath/rtt_estimator.h"
#include "reliability/ack_scheduler.h"
#include "reliability/burst.h"
#include "reliability/flow.h"
#include "reliability/frame_builder.h"
#include "reliability/handshake.h"
#include "reliability/liveness.h"
#include "reliability/receive_window.h"
#include "reliability/retransmission_timer.h"
#include "reliability/sealer.h"
#include "reliability/send_window.h"

namespace cluster::reliability {

struct Flow::Rooms {
  Rooms(const FlowSettings& settings, const Identity& identity, const link::Path& path,
        const Environment& environment, BodyPool& bodies);

  bool alive() const { return status == Status::ok; }

  // --- down (flow_transmit.cc) ---
  struct Pick {
    Sequence sequence;
    bool repair = false;
  };
  /// What goes out with one call of the link.
  struct Choice {
    std::array<Pick, link::kBurstMax> picks;
    std::size_t count = 0;
    std::size_t rail = 0;
    bool more = false;  ///< something is left that has to wait
    bool repairs = false;
    bool awaited = false;  ///< somebody waits for the acknowledgement of a frame on its way
  };

  bool post(const wire::Segment& segment, const Gather& payload, carrier::PayloadMode hold,
            carrier::Token token);
  void transmit(Time now, link::Link& link);
  void accept_opening(const wire::FrameView& opening, link::Link& link);
  void answer_opening(const wire::FrameView& call, const link::Path& way_back, link::Link& link);
  /// Says who this is to a peer that has called.
  void greet(const Handshake& whom, const link::Path& path, link::Link& link);
  void close(Time now, link::Link& link);
  void choose(Choice& choice, std::size_t limit);
  void choose_new(Choice& choice, std::size_t limit);
  multipath::PathManager::Turn next_turn(Time now);
  std::size_t burst_limit() const;
  void probe_path();
  void join_paths();
  void challenge_paths(Time now, link::Link& link);
  void challenge_ethertype_paths(Time now, link::Link& link);
  /// Sends padding in the place of the last frame: a duplicate, which the peer answers.
  void ask_again(Time now, link::Link& link, const Word& word);
  /// The probe's body: padding of so many bytes.
  static void pad(FrameBody& body, std::size_t length);
  bool ack_wanted(const Choice& choice) const;
  /// Sends what was chosen; false if the link did not take all of it. Raises `told` to what
  /// the frames that went out say of `word`.
  bool send(Time now, link::Link& link, const Choice& choice, const Word& word, Word::Said& told);
  /// What the frame says if it went out.
  std::optional<Word::Said> send_bare(const Label& label, const link::Path& path, link::Link& link,
                                      const Word& word);
  void gone_out(Time now, const Pick& pick, std::size_t rail);

  // --- up (flow_receive.cc) ---
  ReceiveResult receive(Time now, const wire::FrameView& view, const link::Path& from, Time arrived);
  /// A sign of life; for the life of the session only what came the long way, which is not to be missed
  /// unseen.
  void heard(Time now, const link::Path& from) {
    heard_at = now;
    if (!from.ethertype) liveness.heard(now);
  }
  void take_acknowledgement(Time now, const wire::FrameView& view, Time arrived_here);
  void report(Sequence s, const FrameBody& body, Sequence complete_before);
  void report_withheld();
  void probe_arrived();
  ReceiveResult take_frame(Time now, const wire::FrameView& view, Time arrived_here);
  bool unheard(Time repair) const;
  void take_fin(Time now, Sequence end);
  bool next(ConstBytes& segments);
  void resume(Time now);
  Time fin_deadline() const;
  void finish_if_complete();
  void detect_losses(Time now);
  void on_timer(Time now);
  void on_silence(Time now, bool timeout);
  void on_path_error(Time now, const link::PathError& complaint);
  Time deadline() const;
  bool drained() const { return !builder.open() && frames.first() == frames.end(); }

  Environment environment;
  multipath::PathManager rails;
  Handshake handshake;
  multipath::PathMtu path_size;
  BodyPool& bodies;
  SendWindow frames;
  FrameBuilder builder;
  RetransmissionTimer timer;
  ReceiveWindow arrivals;
  AckScheduler acks;
  Liveness liveness;

  /// For state() alone.
  struct Tally {
    std::uint64_t sent = 0;
    std::uint64_t retransmitted = 0;
    std::uint64_t lost = 0;
  } tally;
  FrameBody bare{0};               ///< for frames without segments
  Sequence transmission;           ///< number of the last sending
  std::optional<Sequence> urgent;  ///< to be sent again whatever the windows say
  bool asks_again = false;         ///< all has arrived but not all is complete, and the peer is silent
  std::optional<Sequence> asked;   ///< the transmission that asked so last
  std::uint32_t spurious = 0;      ///< as the peer last reported it
  Time heard_at{};                 ///< by whatever way
  /// What the peer last said of arrivals; `plain`: without ranges.
  struct Heard {
    Sequence ack;
    Sequence newest;
    bool plain = false;
    friend bool operator==(const Heard&, const Heard&) = default;
  };
  std::optional<Heard> last_word;
  std::vector<carrier::Token> delivered;
  /// Tokens of frames that have arrived and wait for others before them.
  struct Withheld {
    Sequence sequence;
    carrier::Token token;
  };
  std::vector<Withheld> withheld;
  std::optional<Sequence> fin;   ///< the peer has closed; its frames end here
  Time fin_give_up_at = kNever;  ///< what is missing by then is missing for good
  Time retry_at = kNever;        ///< the link had no room
  Time resume_at = kNever;       ///< the pace allows more
  Status status = Status::ok;

  static constexpr std::size_t kQueuedMax = 88;
  static constexpr std::size_t kSmallWindow = 32;
  static constexpr std::size_t kShortBurst = 16;
  static constexpr std::size_t kLead = 2 * kShortBurst;  ///< frames under way that keep a peer busy
  static constexpr std::size_t kFinCopies = 3;
  static constexpr std::uint64_t kFramesBeforeEthertype =
      16;  ///< frames to a peer before its shortcut matters
  static constexpr Duration kRetryLink = 20us;
  static constexpr Duration kFinTimeout = 200ms;
};

}  // namespace cluster::reliability
