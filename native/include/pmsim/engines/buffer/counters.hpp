#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace pmsim::engines::buffer {

/// What a buffer manager has done since it began. The six transitions of Fig. 6 are named in brackets.
struct BufferCounters {
  std::uint64_t fixes = 0;
  std::uint64_t dram_hits = 0;    ///< its lines, or some of them, are in DRAM
  std::uint64_t dram_misses = 0;  ///< no frame in DRAM
  std::uint64_t swizzled_fixes = 0;
  std::uint64_t page_table_lookups = 0;
  std::uint64_t lines_loaded = 0;        ///< from PMem to DRAM, those of whole pages included
  std::uint64_t pages_loaded_pmem = 0;   ///< frames created over a page on PMem (2)
  std::uint64_t pages_loaded_ssd = 0;    ///< to DRAM (1)
  std::uint64_t pages_ssd_to_pmem = 0;   ///< spitfire: to PMem first
  std::uint64_t lines_written_back = 0;  ///< from DRAM to pages on PMem, all of an admitted page included
  std::uint64_t pages_written_pmem = 0;  ///< write-backs to PMem, and admissions
  std::uint64_t pages_written_ssd = 0;   ///< from either tier
  std::uint64_t pages_cleaned = 0;       ///< written back for their age, so that the log can be truncated
  std::uint64_t mini_allocated = 0;
  std::uint64_t mini_relocated = 0;
  std::uint64_t promotions = 0;
  std::uint64_t swizzles = 0;
  std::uint64_t unswizzles = 0;
  std::uint64_t evictions_dram = 0;     ///< (3)
  std::uint64_t evictions_pmem = 0;     ///< (6)
  std::uint64_t admissions = 0;         ///< (4)
  std::uint64_t denials = 0;            ///< (5)
  std::uint64_t admission_blocked = 0;  ///< admitted, but every frame on PMem was in use
  std::uint64_t micro_log_writes = 0;
  std::uint64_t page_copies_in = 0;   ///< of whole pages from PMem, through a kernel's buffer two of each
  std::uint64_t page_copies_out = 0;  ///< and back
  std::uint64_t direct_fixes = 0;     ///< used where it lies on PMem: spitfire, where it is a miss as well;
                                      ///< redirect-bm, by a frame that points there: neither hit nor miss
  std::uint64_t direct_writes = 0;
  std::uint64_t pages_allocated = 0;
  std::uint64_t pages_released = 0;

  void add_to(std::map<std::string, double>& into) const {
    const auto put = [&into](const char* name, std::uint64_t value) {
      into[name] += static_cast<double>(value);
    };
    put("fixes", fixes);
    put("dram_hits", dram_hits);
    put("dram_misses", dram_misses);
    put("swizzled_fixes", swizzled_fixes);
    put("page_table_lookups", page_table_lookups);
    put("lines_loaded", lines_loaded);
    put("pages_loaded_pmem", pages_loaded_pmem);
    put("pages_loaded_ssd", pages_loaded_ssd);
    put("pages_ssd_to_pmem", pages_ssd_to_pmem);
    put("lines_written_back", lines_written_back);
    put("pages_written_pmem", pages_written_pmem);
    put("pages_written_ssd", pages_written_ssd);
    put("pages_cleaned", pages_cleaned);
    put("mini_allocated", mini_allocated);
    put("mini_relocated", mini_relocated);
    put("promotions", promotions);
    put("swizzles", swizzles);
    put("unswizzles", unswizzles);
    put("evictions_dram", evictions_dram);
    put("evictions_pmem", evictions_pmem);
    put("admissions", admissions);
    put("denials", denials);
    put("admission_blocked", admission_blocked);
    put("micro_log_writes", micro_log_writes);
    put("page_copies_in", page_copies_in);
    put("page_copies_out", page_copies_out);
    put("direct_fixes", direct_fixes);
    put("direct_writes", direct_writes);
    put("pages_allocated", pages_allocated);
    put("pages_released", pages_released);
  }
};

}  // namespace pmsim::engines::buffer
