// The limits and the waiting times of a group. They are part of how the members of a group treat each other
// (docs/protocol.md, section 9).
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/units.h"

namespace cluster::group {

/// Frames of each stream that a member keeps until they are delivered, and that a sender keeps until all
/// members have them.
inline constexpr std::size_t kStreamWindow = 1024;
/// A body leaves this many bytes free, so that a flow's frame can carry it as group_repair with its headers.
inline constexpr std::size_t kBodyOverhead = 96;
/// A member reports after this many frames, and at once if the sender asks for it.
inline constexpr std::size_t kFramesPerStatus = 64;
/// The latest time for a report that no sender waits for, because a report costs a frame and a wake-up.
inline constexpr Duration kStatusDelay = 20ms;
/// Missing ranges that one report names.
inline constexpr std::size_t kNakRanges = 8;
/// A gap is reported after a random part of this, times the doublings of the group. The frames may only be
/// late, and a repair for another member may be on its way.
inline constexpr Duration kNakBackoff = 50us;
/// A gap is reported again after this, doubled each time.
inline constexpr Duration kNakRetry = 2ms;
inline constexpr Duration kNakRetryMax = 100ms;
/// A sender collects reports about a frame for this long before it retransmits the frame.
inline constexpr Duration kRepairHold = 60us;
/// A sender asks members that do not report the frames sent to them: at the latest after this...
inline constexpr Duration kAskInterval = 200ms;
/// ...at the earliest after this if a message waits for a report...
inline constexpr Duration kAskMin = 4ms;
/// ...and otherwise after this, when some members must have reported without a question.
inline constexpr Duration kAskIdle = 2 * kStatusDelay;
/// If no message waits, the newest frame is sent once more after this time without a successor: no gap shows
/// its loss.
inline constexpr Duration kRepeatNewest = 4ms;
/// After this many reports in a row without a frame by multicast, a member gets the stream by unicast...
inline constexpr unsigned kUnheardMax = 4;
/// ...while one frame in this many still goes by multicast, to notice when multicast reaches the member
/// again.
inline constexpr std::uint64_t kProbeInterval = 64;
/// A repair goes to all members if this many miss the frame, or an eighth of the group if that is more, up to
/// kRepairAll.
inline constexpr std::size_t kRepairMany = 2;
inline constexpr std::size_t kRepairAll = 8;
/// For a member without a roster: the interval of the first announcements, their number, and the later
/// interval per 32 members.
inline constexpr Duration kAnnounceFirst = 20ms;
inline constexpr unsigned kAnnouncesFirst = 6;
inline constexpr Duration kAnnounceInterval = 2s;

}  // namespace cluster::group
