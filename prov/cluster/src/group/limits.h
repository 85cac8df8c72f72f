// What a group keeps at most, and how long it waits. Part of how members of a group behave to each other
// (docs/protocol.md, section 9).
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/units.h"

namespace cluster::group {

/// Frames that a member keeps of each stream until they are delivered, and a sender until all members have them.
inline constexpr std::size_t kStreamWindow = 1024;
/// Bytes in front of each segment and frame that a body has to leave free in a frame of a flow (group_repair).
inline constexpr std::size_t kBodyOverhead = 96;
/// A member reports after so many frames, and at once where the sender asks for it.
inline constexpr std::size_t kFramesPerStatus = 64;
/// A frame of which the sender wants no report is covered by one after this at the latest: each costs its sender a frame and the
/// other side a wake-up, and no message waits for it.
inline constexpr Duration kStatusDelay = 20ms;
/// Ranges that one report of what is missing names.
inline constexpr std::size_t kNakRanges = 8;
/// A gap is reported after a random part of this, for each doubling of the group: frames may only be late, and a
/// repair that another member has asked for may be under way.
inline constexpr Duration kNakBackoff = 50us;
/// It is reported again after this, doubled each time.
inline constexpr Duration kNakRetry = 2ms;
inline constexpr Duration kNakRetryMax = 100ms;
/// A sender collects reports of one frame for so long before it repeats it.
inline constexpr Duration kRepairHold = 60us;
/// A sender asks members that have reported nothing about frames they were sent, at the latest after this...
inline constexpr Duration kAskInterval = 200ms;
/// ...at the earliest after this where a message waits for a report, or else, when some of them must have reported unasked.
inline constexpr Duration kAskMin = 4ms;
inline constexpr Duration kAskIdle = 2 * kStatusDelay;
/// Where none waits, the newest frame is sent once more when nothing has followed it for so long: no gap shows that it is lost.
inline constexpr Duration kRepeatNewest = 4ms;
/// A member to which so many reports in a row brought no frame by multicast is sent the stream by unicast...
inline constexpr unsigned kUnheardMax = 4;
/// ...while each so-manieth frame still goes by multicast, so that it is noticed when it arrives there again.
inline constexpr std::uint64_t kProbeInterval = 64;
/// Repairs go to all when so many members miss a frame, or an eighth of the group if that is more, up to kRepairAll.
inline constexpr std::size_t kRepairMany = 2;
inline constexpr std::size_t kRepairAll = 8;
/// The first announcements of a member that knows no roster, and the interval of those that follow, for each 32 members.
inline constexpr Duration kAnnounceFirst = 20ms;
inline constexpr unsigned kAnnouncesFirst = 6;
inline constexpr Duration kAnnounceInterval = 2s;

}  // namespace cluster::group
