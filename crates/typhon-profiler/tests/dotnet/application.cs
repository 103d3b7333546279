// A .NET application that loads a native library with the profiler in it.
//
// usage: application self | push COLLECTIONS
// stdin:  one line starts the collections
// stdout: "ready", then "done" with GC.CollectionCount(0) before and after
using System;
using System.Collections.Generic;
using System.Diagnostics.Tracing;
using System.Reflection;
using System.Runtime.InteropServices;
using System.Threading;

static class Native
{
    const string Library = "dotnet_library";

    public delegate void Callback();

    [DllImport(Library)] public static extern void library_call(Callback application);
    [DllImport(Library)] public static extern int typhon_init();
    [DllImport(Library)] public static extern int typhon_shutdown();
    [DllImport(Library)] public static extern ulong typhon_now_ns();
    [DllImport(Library)] public static extern int typhon_gc_open();
    [DllImport(Library)] public static extern void typhon_gc_close();
    [DllImport(Library)] public static extern int typhon_gc_start(
        ulong timeNs, uint count, uint generation, uint reason, uint type);
    [DllImport(Library)] public static extern int typhon_gc_end(
        ulong timeNs, uint count, uint generation, ulong pauseNs, ulong promoted, ulong gen0, ulong gen1, ulong gen2,
        ulong loh, ulong poh, ulong committed);
    [DllImport(Library)] public static extern int typhon_gc_suspend_begin(ulong timeNs, ulong thread, uint reason);
    [DllImport(Library)] public static extern int typhon_gc_suspend_end(ulong timeNs, ulong thread);
}

// Hears the collector's events inside the process and pushes what they add up to. The runtime calls it on a thread of its
// own, some time after the events; so it takes their own times.
class Listener : EventListener
{
    const int Start = 1, End = 2, RestartEnd = 3, HeapStats = 4, SuspendBegin = 9;

    // Newer than the compiler's framework, and therefore looked up by name.
    static readonly PropertyInfo ThreadId = typeof(EventWrittenEventArgs).GetProperty("OSThreadId");
    static readonly PropertyInfo TimeStamp = typeof(EventWrittenEventArgs).GetProperty("TimeStamp");

    public int Ended;
    uint ended, generation;
    ulong endedNs, suspendedNs;

    protected override void OnEventSourceCreated(EventSource source)
    {
        if (source.Name == "Microsoft-Windows-DotNETRuntime")
            EnableEvents(source, EventLevel.Informational, (EventKeywords)1);
    }

    protected override void OnEventWritten(EventWrittenEventArgs e)
    {
        ulong time = TimeOf(e);
        ulong thread = Convert.ToUInt64(ThreadId.GetValue(e, null));
        switch (e.EventId)
        {
            case SuspendBegin:
                suspendedNs = time;
                Native.typhon_gc_suspend_begin(time, thread, Convert.ToUInt32(e.Payload[0]));
                break;
            case RestartEnd:
                Native.typhon_gc_suspend_end(time, thread);
                break;
            case Start:
                Native.typhon_gc_start(time, Number(e, 0), Number(e, 1), Number(e, 2), Number(e, 3));
                break;
            case End:
                ended = Number(e, 0);
                generation = Number(e, 1);
                endedNs = time;
                break;
            case HeapStats:
                // Follows the end of its collection on the same thread; promoted bytes stand behind each size.
                Native.typhon_gc_end(endedNs, ended, generation, endedNs - suspendedNs,
                    Bytes(e, 1) + Bytes(e, 3) + Bytes(e, 5) + Bytes(e, 7), Bytes(e, 0), Bytes(e, 2), Bytes(e, 4),
                    Bytes(e, 6), Bytes(e, 14), 0);
                Interlocked.Increment(ref Ended);
                break;
        }
    }

    static ulong TimeOf(EventWrittenEventArgs e)
    {
        var age = DateTime.UtcNow - (DateTime)TimeStamp.GetValue(e, null);
        return Native.typhon_now_ns() - (ulong)(age.Ticks * 100);
    }

    static uint Number(EventWrittenEventArgs e, int index) { return Convert.ToUInt32(e.Payload[index]); }
    static ulong Bytes(EventWrittenEventArgs e, int index) { return Convert.ToUInt64(e.Payload[index]); }
}

static class Application
{
    static void Main(string[] arguments)
    {
        int collections = int.Parse(arguments[1]);
        bool pushes = arguments[0] == "push";
        if (Native.typhon_init() != 1) throw new Exception("no recording");
        Listener listener = null;
        if (pushes)
        {
            if (Native.typhon_gc_open() != 1) throw new Exception("no collections are recorded");
            if (Native.typhon_gc_open() != -1) throw new Exception("opened twice");
            listener = new Listener();
        }
        Console.WriteLine("ready");
        Console.ReadLine();
        int before = GC.CollectionCount(0);
        Native.Callback collect = Collect;
        for (int i = 0; i < collections; i++) Native.library_call(collect);
        GC.KeepAlive(collect);
        int after = GC.CollectionCount(0);
        if (pushes)
        {
            while (listener.Ended < after - before) Thread.Sleep(10);
            Native.typhon_gc_close();
            if (Native.typhon_gc_start(1, 1, 1, 1, 1) != 0) throw new Exception("accepted after the end");
        }
        Console.WriteLine("done " + before + " " + after);
        if (pushes && Native.typhon_shutdown() != 1) throw new Exception("no recording ended");
    }

    static void Collect() { GC.Collect(); }
}
