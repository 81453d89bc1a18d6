import { once } from 'node:events';
import { type AddressInfo, createConnection, createServer, type Socket } from 'node:net';
import { type Alarm, Alarms, alarmThat } from '../../../lib/kernel/util/alarms.js';
import { SYSTEM_CLOCK } from '../../../lib/kernel/util/clock.js';
import { FakeClock, settle } from '../../support/world/fake-clock.js';
import { SeededRandom } from '../../support/world/seeded-random.js';

describe('alarms', () => {
  let clock: FakeClock;
  let alarms: Alarms;
  let rung: [string, number][];
  let begin: number;

  beforeEach(() => {
    clock = new FakeClock();
    alarms = new Alarms(clock);
    rung = [];
    begin = clock.now();
  });

  function alarm(name: string, then: () => void = () => {}): Alarm {
    return alarmThat(() => {
      rung.push([name, clock.now() - begin]);
      then();
    });
  }

  const set = (one: Alarm, inMs: number) => alarms.set(one, clock.now() + inMs);

  it('ring once, each at its time, in the order of their times', async () => {
    for (const ms of [30, 10, 20, 10]) set(alarm(`${ms}`), ms);
    await clock.advance(100);
    expect(rung).toEqual([
      ['10', 10],
      ['10', 10],
      ['20', 20],
      ['30', 30],
    ]);
    expect(alarms.size).toBe(0);
    expect(clock.timers).toBe(0);
  });

  it('need one timer, whatever their number and order', async () => {
    const random = new SeededRandom();
    for (let i = 0; i < 1_000; i++) set(alarm(`${i}`), Math.floor(random.fraction() * 10_000));
    expect(alarms.size).toBe(1_000);
    expect(clock.timers).toBe(1);
    await clock.advance(5_000);
    expect(clock.timers).toBe(1);
    await clock.advance(5_000);
    expect(rung).toHaveLength(1_000);
    const times = rung.map(([, time]) => time);
    expect(times).toEqual(times.toSorted((x, y) => x - y));
  });

  it.each([
    ['earlier', 5],
    ['later', 50],
  ])('may be moved to an %s time', async (_, ms) => {
    const one = alarm('one');
    set(one, 20);
    set(alarm('other'), 30);
    set(one, ms);
    expect(alarms.size).toBe(2);
    await clock.advance(100);
    expect(rung).toContainEqual(['one', ms]);
    expect(rung).toHaveLength(2);
  });

  it('may be cancelled, and set again', async () => {
    const one = alarm('one');
    set(one, 20);
    alarms.cancel(one);
    alarms.cancel(one);
    expect(alarms.size).toBe(0);
    await clock.advance(30);
    expect(rung).toEqual([]);
    set(one, 20);
    await clock.advance(30);
    expect(rung).toEqual([['one', 50]]);
  });

  it('are cancelled by Infinity, and never set to it', async () => {
    const one = alarm('one');
    alarms.set(one, Infinity);
    expect([alarms.size, clock.timers]).toEqual([0, 0]);
    set(one, 20);
    alarms.set(one, Infinity);
    await clock.advance(30);
    expect(rung).toEqual([]);
  });

  it('leave others alone when they are cancelled', async () => {
    const all = Array.from({ length: 50 }, (_, i) => alarm(`${i}`));
    all.forEach((one, i) => set(one, (i * 7) % 50));
    all.forEach((one, i) => i % 3 === 0 && alarms.cancel(one));
    await clock.advance(50);
    expect(rung.map(([name]) => Number(name) % 3)).not.toContain(0);
    expect(rung).toHaveLength(33);
    expect(rung.every(([name, time]) => time === (Number(name) * 7) % 50)).toBe(true);
  });

  it('may cancel one another while they ring', async () => {
    const second = alarm('second');
    set(
      alarm('first', () => alarms.cancel(second)),
      10,
    );
    set(second, 10);
    await clock.advance(20);
    expect(rung).toEqual([['first', 10]]);
  });

  it('may set one another, and themselves, while they ring', async () => {
    const other = alarm('other');
    const again: Alarm = alarm('again', () => {
      if (rung.length < 6) set(again, 10);
      set(other, 5);
    });
    set(again, 10);
    await clock.advance(100);
    expect(rung.map(([name, time]) => `${name} ${time}`)).toEqual([
      'again 10',
      'other 15',
      'again 20',
      'other 25',
      'again 30',
      'other 35',
      'again 40',
      'other 45',
    ]);
    expect(clock.timers).toBe(0);
  });

  it('ring together if one sets another for a time that has passed', async () => {
    const other = alarm('other');
    set(
      alarm('one', () => set(other, -5)),
      10,
    );
    await clock.advance(10);
    expect(rung).toEqual([
      ['one', 10],
      ['other', 10],
    ]);
  });

  it('ring at the next opportunity if their time has passed', async () => {
    set(alarm('one'), -100);
    await clock.advance(0);
    expect(rung).toEqual([['one', 0]]);
  });

  it('ring all together if they are late, the oldest first', async () => {
    for (const ms of [30, 10, 20]) set(alarm(`${ms}`), ms);
    clock.block(1_000);
    await clock.advance(0);
    expect(rung).toEqual([
      ['10', 1_000],
      ['20', 1_000],
      ['30', 1_000],
    ]);
  });

  it('ring after input that has arrived, if the process was blocked, even twice', async () => {
    const happened: string[] = [];
    const real = new Alarms(SYSTEM_CLOCK);
    const server = createServer();
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const connect = async () => {
      const here = createConnection((server.address() as AddressInfo).port, '127.0.0.1');
      const [[there]] = (await Promise.all([once(server, 'connection'), once(here, 'connect')])) as [[Socket], unknown];
      return { here, there };
    };
    const [one, two] = [await connect(), await connect()];
    /** The answer comes in time, and the process is not there to read it. */
    const block = (name: string, { here, there }: typeof one, then: () => void): void => {
      const alarm = alarmThat(() => happened.push(`${name} rang`));
      real.setIn(alarm, 20);
      here.once('data', () => {
        happened.push(`${name} was answered`);
        real.cancel(alarm);
        then();
      });
      there.write('the answer');
      for (const from = SYSTEM_CLOCK.now(); SYSTEM_CLOCK.now() < from + 60;);
    };
    // From a phase of the event loop that its timers follow. The second time it is the phase that reads.
    await settle();
    await new Promise<void>((resolve) => {
      block('one', one, () => block('two', two, () => real.setIn(alarmThat(resolve), 20)));
    });
    for (const { here } of [one, two]) here.destroy();
    server.close();
    expect(happened).toEqual(['one was answered', 'two was answered']);
  });

  it('ring at stop(), each once, so that no call waits forever; one that is set after it rings on time', async () => {
    const again = { ...alarm('one'), ring: () => set(alarm('two'), 10) };
    set(again, 20);
    set(alarm('one'), 10);
    alarms.stop();
    expect(rung.map(([name]) => name)).toEqual(['one']);
    await clock.advance(10);
    expect(rung.map(([name]) => name)).toEqual(['one', 'two']);
  });
});
