-- The transaction of sysbench's oltp_write_only, noted when it was acknowledged.
--
-- A line is written when COMMIT has returned, in the form of pgbench's transaction log. With
-- --round the transaction has one row more, which says which transaction of which client it was.
-- A transaction that the server rolled back, because of a deadlock, is tried again under its number.

local ffi = require("ffi")
ffi.cdef [[
typedef struct { long seconds; long nanos; } holdfast_time;
int clock_gettime(int clock, holdfast_time *time);
]]

require("oltp_common")

sysbench.cmdline.options.round = { "Number of the round; negative: no row more", -1 }
sysbench.cmdline.options.ledger = { "Folder of the transaction logs", "." }

local time = ffi.new("holdfast_time")
local sequence = 0
local ledger

local function now_us()
   ffi.C.clock_gettime(0, time)
   return tonumber(time.seconds) * 1000000 + math.floor(tonumber(time.nanos) / 1000)
end

function prepare_statements()
   prepare_begin()
   prepare_commit()
   prepare_index_updates()
   prepare_non_index_updates()
   prepare_delete_inserts()
   ledger = assert(io.open(string.format("%s/transactions.%d", sysbench.opt.ledger,
                                         sysbench.tid), "w"))
   ledger:setvbuf("no")
end

function event()
   local began = now_us()
   begin()
   execute_index_updates()
   execute_non_index_updates()
   execute_delete_inserts()
   if sysbench.opt.round >= 0 then
      con:query(string.format("INSERT INTO acknowledged VALUES (%d, %d, %d)",
                              sysbench.opt.round, sysbench.tid, sequence + 1))
   end
   commit()
   sequence = sequence + 1
   local at = now_us()
   ledger:write(string.format("%d %d %d 0 %d %d\n", sysbench.tid, sequence, at - began,
                              math.floor(at / 1000000), at % 1000000))
end
